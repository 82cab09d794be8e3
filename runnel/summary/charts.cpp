#include "runnel/summary/charts.h"

#include "runnel/base/format.h"
#include "runnel/graph/name_scope.h"
#include "runnel/io/event.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/cumulative.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/segment.h"
#include "runnel/summary/record.h"

namespace runnel::summary {
namespace {

using io::append_field;

std::string chart_message(const Chart& chart) {
  if (chart.tags.empty() == chart.margins.empty()) {
    throw invalid_argument("[summary::custom_scalars_layout] chart '{}' must have either tags or margins", chart.title);
  }
  std::string content, out;
  for (const std::string& tag : chart.tags) append_field(content, 1, std::string_view(tag));
  for (const MarginSeries& series : chart.margins) {
    std::string one;
    append_field(one, 1, std::string_view(series.value));
    append_field(one, 2, std::string_view(series.lower));
    append_field(one, 3, std::string_view(series.upper));
    append_field(content, 1, std::string_view(one));
  }
  append_field(out, 1, std::string_view(chart.title));
  append_field(out, chart.tags.empty() ? 3 : 2, std::string_view(content));
  return out;
}

}  // namespace

Tensor custom_scalars_layout(const std::vector<ChartCategory>& layout, SourceSite where) {
  return composed(where, [&] {
    std::string message;
    for (const ChartCategory& category : layout) {
      std::string one;
      append_field(one, 1, std::string_view(category.title));
      for (const Chart& chart : category.charts) append_field(one, 2, std::string_view(chart_message(chart)));
      if (category.closed) io::append_varint_field(one, 3, 1);
      append_field(message, 2, std::string_view(one));
    }
    return record(
        "summary::custom_scalars_layout", "custom_scalars__config__", [&] { return Tensor(message); }, Step(0),
        serialized_metadata("custom_scalars", "", "", ""));
  });
}

Tensor pr_curve(std::string_view name, const Operand& labels, const Operand& predictions, const Step& step,
                const Operand& weights, const PrCurveOptions& options) {
  return composed(predictions.where(), [&] {
    const int64_t n = options.num_thresholds;
    if (n < 2) throw invalid_argument("[summary::pr_curve] num_thresholds must be at least 2, got {}", n);
    const auto curve = [&] {
      const auto flat = [](const Operand& x) { return reshape(cast(x.value(), DType::float64), {-1}); };
      const Tensor truth = flat(labels);
      const Tensor weight = ones_like(truth) * flat(weights);
      const Tensor bucket = cast(floor(flat(predictions) * static_cast<double>(n - 1)), DType::int32);
      // What is above each threshold.
      const auto above = [&](const Tensor& counted) {
        return cumsum(math::unsorted_segment_sum(counted, bucket, n), 0, false, true);
      };
      const Tensor tp = above(truth * weight), fp = above((1.0 - truth) * weight);
      const Tensor tn = fp[0] - fp, fn = tp[0] - tp;
      const auto part = [](const Tensor& of, const Tensor& all) { return of / maximum(all, 1e-7); };
      return cast(stack({tp, fp, tn, fn, part(tp, tp + fp), part(tp, tp + fn)}), DType::float32);
    };
    std::string content;
    io::append_varint_field(content, 2, static_cast<uint64_t>(n));
    const std::string shown = options.display_name.empty() ? std::string(name) : options.display_name;
    return record("summary::pr_curve", in_name_scope(std::string(name) + "/pr_curves"), curve, step,
                  serialized_metadata("pr_curves", content, shown, options.description));
  });
}

}  // namespace runnel::summary
