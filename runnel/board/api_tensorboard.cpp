// The routes of TensorBoard that scripts ask, answered as it does.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/board/api.h"
#include "runnel/board/json.h"
#include "runnel/board/line_query.h"

namespace runnel::board {
namespace {

Response plain_error(int status, const std::string& text) {
  return {.status = status, .type = "text/plain", .body = text};
}

// A text as Python's repr writes it, which TensorBoard's messages have.
std::string python_text(const std::string* text) {
  if (text == nullptr) return "None";
  const char quote = text->find('\'') != std::string::npos && text->find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : *text) {
    if (c == quote || c == '\\') out += '\\';
    out += c;
  }
  return out + quote;
}

// As Python prints it.
std::string python_number(double v) {
  const std::string text = fmt::format("{}", v);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

// In the order in which they began, those without values too.
Response list_runs(const Index& index) {
  std::vector<std::pair<double, std::string>> runs;
  for (const auto& [run, begun] : index.list().folders) runs.emplace_back(begun, run);
  std::ranges::sort(runs);
  Json json = Json::array();
  for (const auto& [begun, run] : runs) json.push_back(run);
  return json_response(json);
}

Response list_scalar_tags(const Index& index) {
  Json runs = Json::object();
  for (const SeriesInfo& s : index.list().series) {
    if (!s.tag.is_scalar()) continue;
    runs[s.run][s.tag.tag] = {{"displayName", s.tag.display_name}, {"description", s.tag.description}};
  }
  return json_response(runs);
}

// Every point: TensorBoard, which samples, gives these when it is told to keep them all.
Response read_scalars(const Request& request, const Index& index) {
  const std::string *run = request.find("run"), *tag = request.find("tag");
  const std::string asked = fmt::format("tag={}, run={}", python_text(tag), python_text(run));
  if (run == nullptr || tag == nullptr) {
    return plain_error(400, "Invalid argument: Both run and tag must be specified: " + asked);
  }
  const std::optional<SeriesInfo> info = index.find(*run, *tag);
  std::optional<LineParts> parts;
  if (info && info->tag.is_scalar()) parts = index.line(info->id);
  if (!parts) {
    return plain_error(404,
                       fmt::format("Not found: No scalar data for run={}, tag={}", python_text(run), python_text(tag)));
  }
  const std::string* format = request.find("format");
  const bool csv = format != nullptr && *format == "csv";
  Response response{.type = csv ? "text/csv" : "application/json"};
  response.body = csv ? "Wall time,Step,Value\r\n" : "[";
  auto points = std::make_shared<PointStream>(index, std::move(*parts));
  response.stream = [points, csv, first = true, ended = false](std::string& more) mutable {
    if (ended) return false;
    std::vector<LinePoint> some;
    if (!points->next(&some)) {
      ended = true;
      if (!csv) more += "]";
      return true;
    }
    for (const LinePoint& p : some) {
      const double value = p.value;  // a float64 that holds the float32, as Python prints it
      if (csv) {
        more += fmt::format("{},{},{}\r\n", python_number(p.wall), p.step, python_number(value));
      } else {
        if (!first) more += ",";
        more += '[';
        append_number(more, p.wall);
        more += fmt::format(",{},", p.step);
        append_number(more, value);
        more += ']';
      }
      first = false;
    }
    return true;
  };
  return response;
}

}  // namespace

void add_tensorboard_routes(Routes& routes, const Index& index) {
  routes["/data/runs"] = [&index](const Request&) { return list_runs(index); };
  routes["/data/plugin/scalars/tags"] = [&index](const Request&) { return list_scalar_tags(index); };
  routes["/data/plugin/scalars/scalars"] = [&index](const Request& r) { return read_scalars(r, index); };
}

}  // namespace runnel::board
