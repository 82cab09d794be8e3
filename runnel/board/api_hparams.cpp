// Hyperparameters: one row for each session, with the last values of its metrics.
#include <set>

#include "runnel/board/api.h"
#include "runnel/board/hparams.h"
#include "runnel/board/json.h"

namespace runnel::board {
namespace {

Json hparam_json(const HParamsValue& value) {
  if (const double* number = std::get_if<double>(&value)) return json_number(*number);
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  return nullptr;
}

struct Session {
  HParamsContent start;
  std::optional<HParamsContent> end;
};

struct Sessions {
  std::vector<HParamsContent::Named> hparams, metrics;
  std::map<std::string, Session> by_run;
  std::map<std::string, std::map<std::string, const SeriesInfo*>> scalars;  // by run and tag
};

void add_named(std::vector<HParamsContent::Named>& all, const HParamsContent::Named& one) {
  for (const HParamsContent::Named& known : all) {
    if (known.name == one.name && known.group == one.group) return;
  }
  all.push_back(one);
}

Sessions collect(const Listing& listing) {
  Sessions all;
  for (const SeriesInfo& s : listing.series) {
    if (s.tag.is_scalar()) all.scalars[s.run][s.tag.tag] = &s;
    if (s.tag.plugin != "hparams") continue;
    const std::optional<HParamsContent> content = parse_hparams(s.tag.plugin_content);
    if (!content) continue;
    for (const auto& hparam : content->hparams) add_named(all.hparams, hparam);
    for (const auto& metric : content->metrics) add_named(all.metrics, metric);
    if (content->is_start) all.by_run[s.run].start = *content;
    if (content->is_end) all.by_run[s.run].end = *content;
  }
  for (const auto& [run, session] : all.by_run) {
    for (const auto& [name, value] : session.start.values) add_named(all.hparams, {.name = name});
  }
  if (!all.metrics.empty()) return all;
  // Nobody said which tags matter: all that the sessions have.
  for (const auto& [run, session] : all.by_run) {
    for (const auto& [tag, series] : all.scalars[run]) add_named(all.metrics, {.name = tag});
  }
  return all;
}

const SeriesInfo* metric_of(const Sessions& all, const std::string& run, const HParamsContent::Named& metric) {
  const std::string below = run == "." ? metric.group : run + "/" + metric.group;
  const auto scalars = all.scalars.find(metric.group.empty() ? run : below);
  if (scalars == all.scalars.end()) return nullptr;
  const auto series = scalars->second.find(metric.name);
  return series == scalars->second.end() ? nullptr : series->second;
}

Json named_json(const std::vector<HParamsContent::Named>& all) {
  Json json = Json::array();
  for (const HParamsContent::Named& one : all) {
    json.push_back({{"name", one.name},
                    {"group", one.group},
                    {"display_name", one.display_name},
                    {"description", one.description}});
  }
  return json;
}

Response read_hparams(const Index& index) {
  const Listing listing = index.list();
  const Sessions all = collect(listing);
  Json sessions = Json::array();
  for (const auto& [run, session] : all.by_run) {
    Json values = Json::array(), metrics = Json::array();
    for (const HParamsContent::Named& hparam : all.hparams) {
      const auto at = session.start.values.find(hparam.name);
      values.push_back(at == session.start.values.end() ? Json(nullptr) : hparam_json(at->second));
    }
    for (const HParamsContent::Named& metric : all.metrics) {
      const SeriesInfo* series = metric_of(all, run, metric);
      metrics.push_back(series == nullptr ? Json(nullptr) : json_number(series->last.value));
    }
    Json json = {{"run", run},
                 {"group", session.start.group},
                 {"start", json_number(session.start.start)},
                 {"status", session.end ? session.end->status : 0},
                 {"hparams", values},
                 {"metrics", metrics}};
    if (session.end) json["end"] = json_number(session.end->end);
    sessions.push_back(std::move(json));
  }
  return json_response(
      {{"hparams", named_json(all.hparams)}, {"metrics", named_json(all.metrics)}, {"sessions", sessions}});
}

}  // namespace

void add_hparams_routes(Routes& routes, const Index& index) {
  routes["/api/hparams"] = [&index](const Request&) { return read_hparams(index); };
}

}  // namespace runnel::board
