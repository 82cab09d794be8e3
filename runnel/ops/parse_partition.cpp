// Values of ragged features, cut into rows by partitions that stand in other features.
#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/parse_plan.h"

namespace runnel {
namespace {

struct PartitionAttrs {
  std::string kind;     // row_splits, row_lengths, row_starts, row_limits, value_rowids or uniform_row_length
  int64_t length = 0;   // of uniform rows
  std::string feature;  // for errors
  static constexpr auto fields() {
    return field_list(field("kind", &PartitionAttrs::kind), field("length", &PartitionAttrs::length),
                      field("feature", &PartitionAttrs::feature));
  }
};

// Rows without a value cost memory though no byte stands for them.
constexpr int64_t kMostEmptyRows = int64_t{1} << 24;

// Appends where each row of one record ends, counted from the record's first value.
void append_limits(const std::string& kind, const int64_t* p, int64_t n, int64_t values, int64_t length,
                   std::vector<int64_t>& limits) {
  const auto rising = [&](int64_t from, int64_t to) {
    for (int64_t k = from; k < to; ++k) {
      const int64_t last = k == from ? 0 : p[k - 1];
      if (p[k] < last) throw invalid_argument("{} must not fall, and number {} is {} after {}", kind, k, p[k], last);
      limits.push_back(p[k]);
    }
  };
  const auto ends = [&](int64_t end) {
    if (end != values) throw invalid_argument("{} end at {}, but there are {} values", kind, end, values);
  };
  const auto starts_at_0 = [&] {
    if (n > 0 && p[0] != 0) throw invalid_argument("{} begin with {}, not 0", kind, p[0]);
  };
  if (kind == "row_splits") {
    starts_at_0();
    rising(std::min<int64_t>(1, n), n);
    ends(n > 0 ? p[n - 1] : 0);
  } else if (kind == "row_limits") {
    rising(0, n);
    ends(n > 0 ? p[n - 1] : 0);
  } else if (kind == "row_starts") {
    starts_at_0();
    rising(std::min<int64_t>(1, n), n);
    if (n > 0 ? p[n - 1] > values : values > 0)
      throw invalid_argument("{} rows begin at {} at last, but there are {} values", n, n > 0 ? p[n - 1] : 0, values);
    if (n > 0) limits.push_back(values);
  } else if (kind == "row_lengths") {
    int64_t end = 0;
    for (int64_t k = 0; k < n; ++k) {
      if (p[k] < 0 || p[k] > values - end)
        throw invalid_argument("row {} has {} values, but {} of {} are left", k, p[k], values - end, values);
      limits.push_back(end += p[k]);
    }
    ends(end);
  } else if (kind == "value_rowids") {
    if (n != values) throw invalid_argument("there are {} row ids for {} values", n, values);
    int64_t row = 0;
    for (int64_t k = 0; k < n; ++k) {
      if (p[k] < row) throw invalid_argument("{} must not fall, and number {} is {} after {}", kind, k, p[k], row);
      if (p[k] - row > kMostEmptyRows) throw invalid_argument("row ids leave {} rows empty", p[k] - row);
      for (; row < p[k]; ++row) limits.push_back(k);
    }
    if (n > 0) limits.push_back(n);
  } else {
    if (values % length != 0) throw invalid_argument("{} values are no rows of {}", values, length);
    for (int64_t end = length; end <= values; end += length) limits.push_back(end);
  }
}

template <class T>
void partition(KernelContext& c, const PartitionAttrs& a) {
  const bool uniform = a.kind == "uniform_row_length";
  const int64_t records = c.in(0).num_elements() - 1;
  const T *rows = c.in<T>(0), *of = c.in<T>(2);
  const auto* numbers = c.in<int64_t>(1);
  if (records < 0) throw invalid_argument("rows are empty: they begin with 0");
  if (!uniform && c.in(2).num_elements() != records + 1) {
    throw invalid_argument("feature '{}': its values are in {} lists, its partition in {}", a.feature, records,
                           c.in(2).num_elements() - 1);
  }
  const auto check = [](const T* splits, int64_t i, int64_t total) {
    if (splits[i] < (i == 0 ? 0 : splits[i - 1]) || splits[i] > total) throw invalid_argument("rows out of order");
  };
  std::vector<int64_t> ends{0};
  const Tensor outer = Tensor::empty(c.in(0).dtype(), {records + 1});
  T* out = outer.mutable_data<T>();
  const auto number = [](int64_t v) {
    if (v > std::numeric_limits<T>::max())
      throw make_error(Code::out_of_range, "{} values are more than int32 row splits can count: use int64", v);
    return static_cast<T>(v);
  };
  out[0] = 0;
  for (int64_t r = 0; r < records; ++r) {
    check(rows, r, std::numeric_limits<T>::max());
    check(rows, r + 1, std::numeric_limits<T>::max());
    if (!uniform) check(of, r, c.in(1).num_elements()), check(of, r + 1, c.in(1).num_elements());
    const size_t first = ends.size();
    try {
      append_limits(a.kind, uniform ? nullptr : numbers + of[r], uniform ? 0 : of[r + 1] - of[r], rows[r + 1] - rows[r],
                    a.length, ends);
    } catch (const Error& e) {
      throw invalid_argument("record {}: feature '{}': {}", r, a.feature, e.what());
    }
    for (size_t k = first; k < ends.size(); ++k) ends[k] += rows[r];
    out[r + 1] = number(static_cast<int64_t>(ends.size()) - 1);
  }
  const Tensor inner = Tensor::empty(c.in(0).dtype(), {static_cast<int64_t>(ends.size())});
  for (size_t k = 0; k < ends.size(); ++k) inner.mutable_data<T>()[k] = number(ends[k]);
  c.forward(0, inner);
  c.forward(1, outer);
}

const char* kind_of(const io::RaggedPartition& p) {
  static constexpr const char* names[] = {"row_splits", "row_lengths",  "row_starts",
                                          "row_limits", "value_rowids", "uniform_row_length"};
  return names[p.index()];
}

}  // namespace

PartitionedValues partitioned(const std::string& name, const io::RaggedFeature& feature, const RaggedValues& values,
                              const std::vector<RaggedValues>& partitions) {
  static const Op<PartitionAttrs> op("_RaggedPartition");
  PartitionedValues out{values.values, {}, values.rows};
  for (size_t k = feature.partitions.size(); k-- > 0;) {
    const auto* even = std::get_if<io::UniformRowLength>(&feature.partitions[k]);
    const Tensor nothing = Tensor::empty(DType::int64, {0});
    const std::vector<Tensor> made =
        op.many({out.rows, even ? nothing : partitions[k].values, even ? out.rows : partitions[k].rows},
                {.kind = kind_of(feature.partitions[k]), .length = even ? even->length : 0, .feature = name});
    out.rows = made[1];
    if (even && out.splits.empty()) {  // rows of one length need no splits
      const Tensor sizes = shape(out.flat);
      out.flat = reshape(out.flat, concat({Tensor{-1, static_cast<int>(even->length)}, sizes(slice(1, none))}, 0));
    } else {
      out.splits.insert(out.splits.begin(), made[0]);
    }
  }
  return out;
}

void register_parse_partition(Registry& r) {
  r.define<PartitionAttrs>("_RaggedPartition")
      .type("T", index_types)
      .in("rows", "T")
      .in("partition", DType::int64)
      .in("partition_rows", "T")
      .out("inner", "T")
      .out("outer", "T")
      .shape([](InferContext& c, const PartitionAttrs& a) {
        constexpr std::string_view kinds[] = {"row_splits", "row_lengths",  "row_starts",
                                              "row_limits", "value_rowids", "uniform_row_length"};
        if (std::find(std::begin(kinds), std::end(kinds), a.kind) == std::end(kinds)) {
          throw invalid_argument("feature '{}': no partition is of the kind '{}'", a.feature, a.kind);
        }
        if (a.kind == "uniform_row_length" && a.length < 1)
          throw invalid_argument("feature '{}': rows of {} values", a.feature, a.length);
        for (int i = 0; i < 3; ++i) c.require_rank(i, 1);
        c.output(0, PartialShape{kUnknownDim});
        c.output(1, c.input(0));
      })
      .cpu([]<class T>(KernelContext& c, const PartitionAttrs& a) { partition<T>(c, a); })
      .not_differentiable()
      .doc("Values of records cut into rows: inner splits of the values, and outer ones that tell the records' rows.")
      .sample({.in = {Tensor{0, 3, 5}, Tensor{int64_t{2}, int64_t{1}, int64_t{0}, int64_t{2}}, Tensor{0, 2, 4}},
               .out = {Tensor{0, 2, 3, 3, 5}, Tensor{0, 2, 4}}},
              {.kind = "row_lengths", .feature = "a"})
      .sample(
          {.in = {Tensor{0, 3, 5}, Tensor{int64_t{0}, int64_t{2}, int64_t{2}, int64_t{1}, int64_t{1}}, Tensor{0, 3, 5}},
           .out = {Tensor{0, 1, 1, 3, 3, 5}, Tensor{0, 3, 5}}},
          {.kind = "value_rowids", .feature = "a"})
      .sample({.in = {Tensor{0, 4, 6}, Tensor::empty(DType::int64, {0}), Tensor{0, 0, 0}},
               .out = {Tensor{0, 2, 4, 6}, Tensor{0, 2, 3}}},
              {.kind = "uniform_row_length", .length = 2, .feature = "a"})
      .sample({.in = {Tensor{0, 3}, Tensor{int64_t{0}, int64_t{2}}, Tensor{0, 2}},
               .error = "record 0: feature 'a': row_splits end at 2, but there are 3 values"},
              {.kind = "row_splits", .feature = "a"})
      .sample({.in = {Tensor{0, 1}, Tensor{int64_t{1}}, Tensor{0, 1}}, .error = "no partition is of the kind 'rows'"},
              {.kind = "rows", .feature = "a"});
}

}  // namespace runnel
