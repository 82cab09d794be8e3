#include "runnel/summary/hparams.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "runnel/base/format.h"
#include "runnel/base/sha256.h"
#include "runnel/io/event.h"
#include "runnel/op/composed.h"
#include "runnel/summary/record.h"
#include "runnel/summary/summary.h"

namespace runnel::summary {
namespace {

using io::append_field;
using io::append_varint_field;

// DataType of TensorBoard's api.proto.
uint64_t hparam_type(const HParamValue& v) {
  switch (v.kind()) {
    case HParamValue::Kind::text: return 1;
    case HParamValue::Kind::boolean: return 2;
    default: return 3;
  }
}

// A google.protobuf.Value.
std::string value_message(const HParamValue& v) {
  std::string out;
  switch (v.kind()) {
    case HParamValue::Kind::text: append_field(out, 3, v.text()); break;
    case HParamValue::Kind::boolean: append_varint_field(out, 4, v.number() != 0); break;
    default: append_field(out, 2, v.number());
  }
  return out;
}

void append_text(std::string& out, uint32_t field, const std::string& text) {
  if (!text.empty()) append_field(out, field, std::string_view(text));
}

std::string hparam_message(const HParam& p) {
  if (p.name.empty()) throw invalid_argument("[summary::hparams_config] a hyperparameter has no name");
  std::string out;
  append_text(out, 1, p.name);
  append_text(out, 2, p.display_name);
  append_text(out, 3, p.description);
  if (!p.domain.defined()) return out;
  if (p.domain.is_interval()) {
    if (!(p.domain.low() <= p.domain.high())) {
      throw invalid_argument("[summary::hparams_config] the interval of '{}' is from {} to {}", p.name, p.domain.low(),
                             p.domain.high());
    }
    append_varint_field(out, 4, 3);
    std::string interval;
    if (p.domain.low() != 0) append_field(interval, 1, p.domain.low());
    if (p.domain.high() != 0) append_field(interval, 2, p.domain.high());
    append_field(out, 6, std::string_view(interval));
    return out;
  }
  std::vector<HParamValue> values = p.domain.values();
  std::ranges::sort(values, [](const HParamValue& a, const HParamValue& b) {  // as TensorBoard has them
    return std::tuple(a.number(), a.text()) < std::tuple(b.number(), b.text());
  });
  if (values.empty()) throw invalid_argument("[summary::hparams_config] '{}' has no values to take", p.name);
  std::string list;
  for (const HParamValue& v : values) {
    if (hparam_type(v) != hparam_type(values[0])) {
      throw invalid_argument("[summary::hparams_config] the values of '{}' are of several types", p.name);
    }
    append_field(list, 1, std::string_view(value_message(v)));
  }
  append_varint_field(out, 4, hparam_type(values[0]));
  append_field(out, 5, std::string_view(list));
  return out;
}

std::string metric_message(const HParamMetric& m) {
  std::string name, out;
  append_text(name, 1, m.group);
  append_text(name, 2, m.tag);
  append_field(out, 1, std::string_view(name));
  append_text(out, 3, m.display_name);
  append_text(out, 4, m.description);
  if (m.dataset_type != HParamMetric::Dataset::unknown) {
    append_varint_field(out, 5, static_cast<uint64_t>(m.dataset_type));
  }
  return out;
}

// All is in the metadata; the tensor is an empty one.
Tensor write_hparams(const char* tag, uint32_t field, const std::string& message, const SourceSite& where) {
  return composed(where, [&] {
    std::string content;
    append_field(content, field, std::string_view(message));
    return record(
        tag, tag, [] { return Tensor::empty(DType::float32, {0}); }, Step(0),
        serialized_metadata("hparams", content, "", ""));
  });
}

// As Python's json writes it: the name of a trial is a hash of that.
std::string json_text(const HParamValue& v) {
  switch (v.kind()) {
    case HParamValue::Kind::text: {
      using Json = nlohmann::json;
      return Json(v.text()).dump(-1, ' ', true, Json::error_handler_t::replace);
    }
    case HParamValue::Kind::boolean: return v.integer() != 0 ? "true" : "false";
    case HParamValue::Kind::integer: return fmt::format("{}", v.integer());
    case HParamValue::Kind::real: break;
  }
  if (std::isnan(v.number())) return "NaN";
  if (std::isinf(v.number())) return v.number() > 0 ? "Infinity" : "-Infinity";
  std::string text = fmt::format("{}", v.number());
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string trial_name(const std::map<std::string, HParamValue>& hparams) {
  std::string json;
  for (const auto& [name, value] : hparams) {
    json += (json.empty() ? "" : ",") + json_text(HParamValue(name)) + ":" + json_text(value);
  }
  json = "{" + json + "}";
  Sha256 hash;
  hash.update(as_bytes(json));
  return hash.hex();
}

}  // namespace

Tensor hparams_config(const std::vector<HParam>& hparams, const std::vector<HParamMetric>& metrics,
                      std::optional<double> time_created_secs, SourceSite where) {
  return composed(where, [&] {
    std::string experiment;
    append_field(experiment, 3, time_created_secs.value_or(io::event_time()));
    for (const HParam& p : hparams) append_field(experiment, 4, std::string_view(hparam_message(p)));
    for (const HParamMetric& m : metrics) append_field(experiment, 5, std::string_view(metric_message(m)));
    return write_hparams("_hparams_/experiment", 2, experiment, where);
  });
}

Tensor hparams(const std::map<std::string, HParamValue>& hparams, const std::string& trial_id,
               std::optional<double> start_time_secs, SourceSite where) {
  std::string info;
  for (const auto& [name, value] : hparams) {
    std::string entry;
    append_field(entry, 1, std::string_view(name));
    append_field(entry, 2, std::string_view(value_message(value)));
    append_field(info, 1, std::string_view(entry));
  }
  append_text(info, 4, trial_id.empty() ? trial_name(hparams) : trial_id);
  append_field(info, 5, start_time_secs.value_or(io::event_time()));
  return write_hparams("_hparams_/session_start_info", 3, info, where);
}

Tensor hparams_session_end(HParamsStatus status, std::optional<double> end_time_secs, SourceSite where) {
  std::string info;
  if (status != HParamsStatus::unknown) append_varint_field(info, 1, static_cast<uint64_t>(status));
  append_field(info, 2, end_time_secs.value_or(io::event_time()));
  return write_hparams("_hparams_/session_end_info", 4, info, where);
}

}  // namespace runnel::summary
