#pragma once

// Charts of several tags, and curves of precision and recall.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"
#include "runnel/op/operand.h"
#include "runnel/summary/writer.h"

namespace runnel::summary {

// How TensorBoard's dashboard of custom scalars is laid out: categories of charts.
struct MarginSeries {
  std::string value;
  std::string lower;
  std::string upper;
};
struct Chart {
  std::string title;
  std::vector<std::string> tags = {};      // regular expressions: lines in one chart
  std::vector<MarginSeries> margins = {};  // in their place: lines with a range around
};
struct ChartCategory {
  std::string title;
  std::vector<Chart> charts;
  bool closed = false;
};
RUNNEL_API Tensor custom_scalars_layout(const std::vector<ChartCategory>& layout,
                                        SourceSite where = SourceSite::current());

struct PrCurveOptions {
  int64_t num_thresholds = 200;
  std::string display_name = {};
  std::string description = {};
};
// Precision and recall over thresholds. labels: bool; predictions: from 0 to 1, of the same shape; weights: of that
// shape or one number.
RUNNEL_API Tensor pr_curve(std::string_view name, const Operand& labels, const Operand& predictions,
                           const Step& step = {}, const Operand& weights = 1, const PrCurveOptions& options = {});

}  // namespace runnel::summary
