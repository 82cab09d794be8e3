// Serialized SequenceExamples: the context as for Examples, and lists of features with a dimension of time.
#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/io/example.h"
#include "runnel/op/builder.h"
#include "runnel/ops/example_columns.h"
#include "runnel/ops/parse_plan.h"

namespace runnel {
namespace {

constexpr ExampleInputs context_inputs{.sparse_keys = 2, .dense_keys = 3, .ragged_keys = 4, .dense_defaults = 9};
constexpr int list_sparse_keys = 5, list_dense_keys = 6, list_ragged_keys = 7, list_missing = 8;

ParseExampleAttrs context_attrs(const ParseSequenceAttrs& a) {
  return {.Tdense = a.Tcontext_dense,
          .num_sparse = a.Ncontext_sparse,
          .sparse_types = a.context_sparse_types,
          .ragged_value_types = a.context_ragged_value_types,
          .ragged_split_types = a.context_ragged_split_types,
          .dense_shapes = a.context_dense_shapes};
}

// Outputs behind those of the context.
struct ListOutputs {
  size_t first, sparse, dense, ragged;
  explicit ListOutputs(const ParseSequenceAttrs& a)
      : first(static_cast<size_t>(3 * a.Ncontext_sparse) + a.Tcontext_dense.size() +
              2 * a.context_ragged_value_types.size()),
        sparse(a.feature_list_sparse_types.size()),
        dense(a.feature_list_dense_types.size()),
        ragged(a.feature_list_ragged_value_types.size()) {}
  int indices(size_t i) const { return at(i); }
  int values(size_t i) const { return at(sparse + i); }
  int shapes(size_t i) const { return at(2 * sparse + i); }
  int dense_at(size_t i) const { return at(3 * sparse + i); }
  int lengths(size_t i) const { return at(3 * sparse + dense + i); }
  int ragged_values(size_t i) const { return at(3 * sparse + 2 * dense + i); }
  int outer_splits(size_t i) const { return at(3 * sparse + 2 * dense + ragged + i); }
  int inner_splits(size_t i) const { return at(3 * sparse + 2 * dense + 2 * ragged + i); }

 private:
  int at(size_t i) const { return static_cast<int>(first + i); }
};

void infer(InferContext& c, const ParseSequenceAttrs& a) {
  infer_example_outputs(c, context_attrs(a), context_inputs);
  if (a.feature_list_sparse_types.size() != static_cast<size_t>(a.Nfeature_list_sparse) ||
      a.feature_list_dense_types.size() != static_cast<size_t>(a.Nfeature_list_dense) ||
      a.feature_list_dense_shapes.size() != a.feature_list_dense_types.size() ||
      a.feature_list_ragged_split_types.size() != a.feature_list_ragged_value_types.size()) {
    throw invalid_argument("the lists of types, shapes and counts of feature lists differ in length");
  }
  for (const PartialShape& shape : a.feature_list_dense_shapes) {
    if (!shape.is_static()) throw invalid_argument("the shape {} of a feature list is not fully known", shape.str());
  }
  const ListOutputs out(a);
  const PartialShape& serialized = c.input(0);
  const int64_t rank = serialized.rank();
  const int64_t batch = rank == 1 ? serialized[0] : kUnknownDim;
  for (size_t i = 0; i < out.sparse; ++i) {
    c.output(out.indices(i), PartialShape{kUnknownDim, rank < 0 ? kUnknownDim : rank + 2});
    c.output(out.values(i), PartialShape{kUnknownDim});
    c.output(out.shapes(i), PartialShape{rank < 0 ? kUnknownDim : rank + 2});
  }
  for (size_t i = 0; i < out.dense; ++i) {
    Dims dims;
    if (rank == 1) dims.push_back(batch);
    dims.push_back(kUnknownDim);
    for (int64_t d : a.feature_list_dense_shapes[i]) dims.push_back(d);
    c.output(out.dense_at(i), rank < 0 ? PartialShape::unknown() : PartialShape(dims));
    c.output(out.lengths(i), serialized);
  }
  for (size_t i = 0; i < out.ragged; ++i) {
    c.output(out.ragged_values(i), PartialShape{kUnknownDim});
    const int64_t rows = rank == 0 ? 1 : batch;
    c.output(out.outer_splits(i), PartialShape{rows < 0 ? kUnknownDim : rows + 1});
    c.output(out.inner_splits(i), PartialShape{kUnknownDim});
  }
}

// One feature list of all records: how many steps each record has, how many values each step, and the values.
struct Steps {
  std::vector<int64_t> per_record;
  Column column;  // one row per step

  int64_t longest() const { return per_record.empty() ? 0 : *std::max_element(per_record.begin(), per_record.end()); }
};

void append_feature(Column& column, DType dtype, const io::Feature& feature) {
  const auto kind = static_cast<io::wire::Kind>(feature.kind.index());
  auto wrong = [&](const char* wanted) { return invalid_argument("it holds {}, not {}", kind_name(kind), wanted); };
  size_t n = 0;
  auto append = [&](auto& to, const auto* list, const char* wanted) {
    if (list == nullptr) throw wrong(wanted);
    n = list->value.size();
    to.insert(to.end(), list->value.begin(), list->value.end());
  };
  if (kind != io::wire::Kind::none) {  // a feature without a list has no values
    if (dtype == DType::float32) append(column.floats, feature.float_list(), "floats");
    if (dtype == DType::int64) append(column.int64s, feature.int64_list(), "int64s");
    if (dtype == DType::string) append(column.strings, feature.bytes_list(), "strings");
  }
  column.counts.push_back(static_cast<int64_t>(n));
}

struct ListPlan {
  std::string key;
  DType dtype;
  int64_t elements = -1;  // per step, if that is fixed
  bool missing_is_empty = true;
};

void add_record(const io::SequenceExample& example, const ListPlan& plan, Steps& steps) {
  const auto it = example.feature_lists.feature_list.find(plan.key);
  if (it == example.feature_lists.feature_list.end()) {
    if (!plan.missing_is_empty) throw invalid_argument("feature list '{}' is missing", plan.key);
    steps.per_record.push_back(0);
    return;
  }
  const std::vector<io::Feature>& features = it->second.feature;
  for (size_t t = 0; t < features.size(); ++t) {
    try {
      append_feature(steps.column, plan.dtype, features[t]);
      if (plan.elements >= 0 && steps.column.counts.back() != plan.elements) {
        throw invalid_argument("it has {} values, but its shape asks for {}", steps.column.counts.back(),
                               plan.elements);
      }
    } catch (const Error& e) {
      throw make_error(e.code(), "feature list '{}', step {}: {}", plan.key, t, e.what());
    }
  }
  steps.per_record.push_back(static_cast<int64_t>(features.size()));
}

void put_sparse(KernelContext& c, const ListOutputs& out, size_t i, DType dtype, const Steps& steps, bool single) {
  int64_t total = 0, widest = 0;
  for (int64_t n : steps.column.counts) total += n, widest = std::max(widest, n);
  Tensor indices = Tensor::empty(DType::int64, Shape{total, single ? 2 : 3});
  int64_t* to = indices.mutable_data<int64_t>();
  size_t row = 0;
  for (size_t r = 0; r < steps.per_record.size(); ++r) {
    for (int64_t t = 0; t < steps.per_record[r]; ++t, ++row) {
      for (int64_t k = 0; k < steps.column.counts[row]; ++k) {
        if (!single) *to++ = static_cast<int64_t>(r);
        *to++ = t;
        *to++ = k;
      }
    }
  }
  c.forward(out.indices(i), indices);
  c.forward(out.values(i), ParsedColumns{{{steps.column}}}.values(0, dtype));
  const auto records = static_cast<int64_t>(steps.per_record.size());
  c.forward(out.shapes(i), single ? Tensor{steps.longest(), widest} : Tensor{records, steps.longest(), widest});
}

void put_dense(KernelContext& c, const ListOutputs& out, size_t i, const ListPlan& plan, const PartialShape& shape,
               Steps& steps, bool single) {
  Dims dims;
  if (!single) dims.push_back(static_cast<int64_t>(steps.per_record.size()));
  dims.push_back(steps.longest());
  for (int64_t d : shape) dims.push_back(d);
  Tensor dense = Tensor::empty(plan.dtype, Shape(dims));
  // Each record as one padded row.
  ParsedColumns rows{{{std::move(steps.column)}}};
  rows.chunks[0][0].counts = steps.per_record;
  for (int64_t& n : rows.chunks[0][0].counts) n *= plan.elements;
  Tensor zero = Tensor::empty(plan.dtype, {});
  if (plan.dtype != DType::string) std::memset(zero.mutable_data<char>(), 0, dtype_size(plan.dtype));
  if (dense.num_elements() > 0) rows.pad_into(0, steps.longest() * plan.elements, zero, dense);
  c.forward(out.dense_at(i), dense);
  c.forward(out.lengths(i), Tensor::of<int64_t>(steps.per_record, c.in(0).shape()));
}

void run(KernelContext& c, const ParseSequenceAttrs& a) {
  const Tensor& serialized = c.in(0);
  const bool single = serialized.rank() == 0;
  const int64_t n = serialized.num_elements();
  const Bytes* records = serialized.data<Bytes>();
  const RecordNames names{&c.in(1), records};
  const ListOutputs out(a);
  std::vector<ListPlan> plans;
  auto add_plans = [&](int keys, const std::vector<DType>& types) {
    if (c.in(keys).num_elements() != static_cast<int64_t>(types.size())) {
      throw invalid_argument("{} keys for {} feature lists", c.in(keys).num_elements(), types.size());
    }
    for (size_t i = 0; i < types.size(); ++i) plans.push_back({c.in<Bytes>(keys)[i].str(), types[i]});
  };
  add_plans(list_sparse_keys, a.feature_list_sparse_types);
  add_plans(list_dense_keys, a.feature_list_dense_types);
  add_plans(list_ragged_keys, a.feature_list_ragged_value_types);
  const Tensor& missing = c.in(list_missing);
  if (missing.num_elements() != static_cast<int64_t>(out.dense)) {
    throw invalid_argument("feature_list_dense_missing_assumed_empty has {} elements for {} dense feature lists",
                           missing.num_elements(), out.dense);
  }
  for (size_t i = 0; i < out.dense; ++i) {
    plans[out.sparse + i].elements = Shape(a.feature_list_dense_shapes[i]).num_elements();
    plans[out.sparse + i].missing_is_empty = missing.data<bool>()[i];
  }

  std::vector<Steps> steps(plans.size());
  std::vector<Bytes> contexts;
  for (int64_t r = 0; r < n; ++r) {
    try {
      const io::SequenceExample example = io::SequenceExample::parse(records[r].view());
      contexts.emplace_back(io::Example{example.context}.serialize());
      for (size_t p = 0; p < plans.size(); ++p) add_record(example, plans[p], steps[p]);
    } catch (const Error& e) {
      throw make_error(e.code(), "{}: {}", names.of(r), e.what());
    }
  }
  parse_examples(c, context_attrs(a), context_inputs, contexts.data(), n, single, names);
  for (size_t i = 0; i < out.sparse; ++i) put_sparse(c, out, i, plans[i].dtype, steps[i], single);
  for (size_t i = 0; i < out.dense; ++i) {
    const size_t p = out.sparse + i;
    put_dense(c, out, i, plans[p], a.feature_list_dense_shapes[i], steps[p], single);
  }
  for (size_t i = 0; i < out.ragged; ++i) {
    const size_t p = out.sparse + out.dense + i;
    const DType splits = a.feature_list_ragged_split_types[i];
    c.forward(out.outer_splits(i), row_splits_of(steps[p].per_record, splits));
    c.forward(out.inner_splits(i), row_splits_of(steps[p].column.counts, splits));
    c.forward(out.ragged_values(i), ParsedColumns{{{std::move(steps[p].column)}}}.values(0, plans[p].dtype));
  }
}

}  // namespace

void register_parse_sequence(Registry& r) {
  const io::SequenceExample sample{{{{"id", io::Int64List{{5}}}}},
                                   {{{"w", io::FeatureList{{io::FloatList{{1.f}}, io::FloatList{{2.f, 3.f}}}}},
                                     {"x", io::FeatureList{{io::Int64List{{1, 2}}, io::Int64List{{3, 4}}}}}}}};
  const Tensor one(Bytes(sample.serialize()));
  const Tensor none = Tensor::empty(DType::string, {0});
  const Tensor required = Tensor::empty(DType::int64, {0});

  r.define<ParseSequenceAttrs>("ParseSequenceExampleV2")
      .in("serialized", DType::string)
      .in("debug_name", DType::string)
      .in("context_sparse_keys", DType::string)
      .in("context_dense_keys", DType::string)
      .in("context_ragged_keys", DType::string)
      .in("feature_list_sparse_keys", DType::string)
      .in("feature_list_dense_keys", DType::string)
      .in("feature_list_ragged_keys", DType::string)
      .in("feature_list_dense_missing_assumed_empty", DType::bool_)
      .in_any_list("context_dense_defaults", "Tcontext_dense")
      .out_list("context_sparse_indices", "Ncontext_sparse", DType::int64)
      .out_any_list("context_sparse_values", "context_sparse_types")
      .out_list("context_sparse_shapes", "Ncontext_sparse", DType::int64)
      .out_any_list("context_dense_values", "Tcontext_dense")
      .out_any_list("context_ragged_values", "context_ragged_value_types")
      .out_any_list("context_ragged_row_splits", "context_ragged_split_types")
      .out_list("feature_list_sparse_indices", "Nfeature_list_sparse", DType::int64)
      .out_any_list("feature_list_sparse_values", "feature_list_sparse_types")
      .out_list("feature_list_sparse_shapes", "Nfeature_list_sparse", DType::int64)
      .out_any_list("feature_list_dense_values", "feature_list_dense_types")
      .out_list("feature_list_dense_lengths", "Nfeature_list_dense", DType::int64)
      .out_any_list("feature_list_ragged_values", "feature_list_ragged_value_types")
      .out_any_list("feature_list_ragged_outer_splits", "feature_list_ragged_split_types")
      .out_any_list("feature_list_ragged_inner_splits", "feature_list_ragged_split_types")
      .shape([](InferContext& c, const ParseSequenceAttrs& a) { infer(c, a); })
      .cpu([](KernelContext& c, const ParseSequenceAttrs& a) { run(c, a); })
      .not_differentiable()
      .doc("Serialized SequenceExamples as dense, sparse and ragged tensors.")
      .sample({.in = {one, none, none, Tensor{"id"}, none, Tensor{"w"}, Tensor{"x"}, none, Tensor{false}, required},
               .out = {Tensor(int64_t{5}),
                       Tensor{{int64_t{0}, int64_t{0}}, {int64_t{1}, int64_t{0}}, {int64_t{1}, int64_t{1}}},
                       Tensor{1.f, 2.f, 3.f}, Tensor{int64_t{2}, int64_t{2}},
                       Tensor{{int64_t{1}, int64_t{2}}, {int64_t{3}, int64_t{4}}}, Tensor(int64_t{2})}},
              {.Tcontext_dense = {DType::int64},
               .context_dense_shapes = {PartialShape{}},
               .Nfeature_list_sparse = 1,
               .Nfeature_list_dense = 1,
               .feature_list_dense_types = {DType::int64},
               .feature_list_sparse_types = {DType::float32},
               .feature_list_dense_shapes = {PartialShape{2}}})
      .sample({.in = {one, none, none, none, none, none, Tensor{"y"}, none, Tensor{false}},
               .error = "feature list 'y' is missing"},
              {.Nfeature_list_dense = 1,
               .feature_list_dense_types = {DType::int64},
               .feature_list_dense_shapes = {PartialShape{}}});
}

}  // namespace runnel
