#include <nlohmann/json.hpp>

#include "runnel/io/profile_names.h"
#include "runnel/io/profile_report.h"

namespace runnel::io {
namespace {

using ReportJson = nlohmann::ordered_json;

ReportJson json_of(const PartTimes& part, int64_t count, int64_t whole_ns) {
  return {{"total_ns", part.total_ns},
          {"mean_ns", part.total_ns / count},
          {"min_ns", part.min_ns},
          {"max_ns", part.max_ns},
          {"share", whole_ns > 0 ? static_cast<double>(part.total_ns) / static_cast<double>(whole_ns) : 0}};
}

ReportJson json_of(const StepSummary& s) {
  const auto part = [&](const PartTimes& p) { return json_of(p, s.count, s.length.total_ns); };
  return {{"name", s.name},         {"count", s.count},     {"step", part(s.length)}, {"compute", part(s.compute)},
          {"input", part(s.input)}, {"host", part(s.host)}, {"idle", part(s.idle)}};
}

ReportJson json_of(const StepTimes& s) {
  return {{"name", s.name},           {"number", s.number},         {"begin_ns", s.begin_ns},
          {"length_ns", s.length_ns}, {"compute_ns", s.compute_ns}, {"input_ns", s.input_ns},
          {"host_ns", s.host_ns},     {"idle_ns", s.idle_ns}};
}

ReportJson json_of(const ProfiledOp& op, const MachinePeak& peak) {
  ReportJson json = {{"name", op.name},
                     {"type", op.type},
                     {"kind", profile_kind_name(op.kind)},
                     {"calls", op.calls},
                     {"total_ns", op.total_ns},
                     {"self_ns", op.self_ns},
                     {"flops", op.flops},
                     {"bytes", op.bytes},
                     {"gflops_per_second", op.flops_per_second() / 1e9},
                     {"gbytes_per_second", op.bytes_per_second() / 1e9},
                     {"share_of_peak", nullptr}};
  if (peak.known() && (op.flops > 0 || op.bytes > 0)) json["share_of_peak"] = share_of_peak(op, peak).share;
  return json;
}

ReportJson json_of(const ProfiledInput& input) {
  ReportJson stages = ReportJson::array();
  for (const ProfiledStage& s : input.stages) {
    stages.push_back({{"path", s.path},
                      {"elements", s.elements},
                      {"own_ns", s.own_ns},
                      {"waited_ns", s.waited_ns},
                      {"threads", s.threads},
                      {"busy", s.busy}});
  }
  ReportJson bottleneck = nullptr;
  if (input.bottleneck >= 0) bottleneck = input.stages[static_cast<size_t>(input.bottleneck)].path;
  return {
      {"steps_that_waited", input.waits}, {"waited_ns", input.waited_ns}, {"share", input.share}, {"stages", stages},
      {"bottleneck", bottleneck},         {"words", input.words}};
}

ReportJson json_of(const ProfiledMemory& m) {
  ReportJson holders = ReportJson::array();
  for (const MemoryHolder& h : m.holders) {
    ReportJson op = nullptr;
    if (!h.op.empty()) op = h.op;
    holders.push_back({{"op", op}, {"bytes", h.bytes}});
  }
  return {{"start_bytes", m.start_bytes},
          {"end_bytes", m.end_bytes},
          {"peak_bytes", m.peak_bytes},
          {"peak_at_ns", m.peak_at_ns},
          {"peak_step", m.peak_step},
          {"holders", holders},
          {"chart", m.chart}};
}

}  // namespace

std::string profile_report_json(const ProfileReport& r) {
  ReportJson json = {{"host", r.host},           {"started_unix_ns", r.started_unix_ns},
                     {"length_ns", r.length_ns}, {"events", r.events},
                     {"threads", r.threads},     {"lost_events", r.lost},
                     {"peak", nullptr}};
  if (r.peak.known()) {
    json["peak"] = {{"gflops_per_second", r.peak.flops_per_second / 1e9},
                    {"gbytes_per_second", r.peak.bytes_per_second / 1e9}};
  }
  json["steps_marked"] = r.steps_marked;
  for (const char* list : {"summaries", "steps", "ops", "work"}) json[list] = ReportJson::array();
  for (const StepSummary& s : r.summaries) json["summaries"].push_back(json_of(s));
  for (const StepTimes& s : r.steps) json["steps"].push_back(json_of(s));
  for (const ProfiledOp& op : r.ops) json["ops"].push_back(json_of(op, r.peak));
  for (const ProfiledWork& w : r.work) {
    json["work"].push_back({{"kind", profile_kind_name(w.kind)}, {"calls", w.calls}, {"total_ns", w.total_ns}});
  }
  json["input"] = json_of(r.input);
  json["memory"] = nullptr;
  if (r.has_memory) json["memory"] = json_of(r.memory);
  return json.dump(-1, ' ', false, ReportJson::error_handler_t::replace);
}

}  // namespace runnel::io
