// Serialized Examples into columns of tensors.
#include "runnel/base/format.h"
#include "runnel/io/example.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/example_columns.h"
#include "runnel/ops/parse_plan.h"

namespace runnel {
namespace {

constexpr ExampleInputs example_inputs{.sparse_keys = 2, .dense_keys = 3, .ragged_keys = 4, .dense_defaults = 5};

ExampleOutputs outputs_of(const ParseExampleAttrs& a) {
  return {static_cast<size_t>(a.num_sparse), a.Tdense.size(), a.ragged_value_types.size()};
}

bool is_variable(const PartialShape& shape) { return shape.rank() > 0 && shape[0] < 0; }

int64_t step_elements(const PartialShape& shape) {
  int64_t n = 1;
  for (int i = is_variable(shape) ? 1 : 0; i < shape.rank(); ++i) n *= shape[i];
  return n;
}

void check_attrs(const ParseExampleAttrs& a) {
  if (a.sparse_types.size() != static_cast<size_t>(a.num_sparse)) {
    throw invalid_argument("num_sparse is {}, but there are {} sparse_types", a.num_sparse, a.sparse_types.size());
  }
  if (a.Tdense.size() != a.dense_shapes.size()) {
    throw invalid_argument("{} Tdense for {} dense_shapes", a.Tdense.size(), a.dense_shapes.size());
  }
  if (a.ragged_value_types.size() != a.ragged_split_types.size()) {
    throw invalid_argument("{} ragged_value_types for {} ragged_split_types", a.ragged_value_types.size(),
                           a.ragged_split_types.size());
  }
  for (const PartialShape& shape : a.dense_shapes) {
    if (!shape.has_rank()) throw invalid_argument("a dense feature needs a shape");
    for (int i = 1; i < shape.rank(); ++i) {
      if (shape[i] < 0) throw invalid_argument("only the first dimension of {} may be unknown", shape.str());
    }
  }
}

void check_keys(const InferContext& c, int input, size_t expected, const char* what) {
  const PartialShape& shape = c.input(input);
  if (!shape.has_rank()) return;
  if (shape.rank() != 1 || (shape[0] >= 0 && static_cast<size_t>(shape[0]) != expected)) {
    throw invalid_argument("{} has shape {}, expected [{}]", what, shape.str(), expected);
  }
}

PartialShape with_front(std::optional<int64_t> batch, const PartialShape& shape) {
  Dims dims;
  if (batch) dims.push_back(*batch);
  for (int64_t d : shape) dims.push_back(d);
  return PartialShape(dims);
}

}  // namespace

Tensor row_splits_of(const std::vector<int64_t>& counts, DType dtype) {
  Tensor out = Tensor::empty(dtype, Shape{static_cast<int64_t>(counts.size()) + 1});
  auto fill = [&]<class E>(E* to) {
    int64_t sum = 0;
    for (size_t i = 0; i <= counts.size(); ++i) {
      if (sum > std::numeric_limits<E>::max()) {
        throw make_error(Code::out_of_range, "{} values are more than int32 row splits can count: use int64", sum);
      }
      to[i] = static_cast<E>(sum);
      if (i < counts.size()) sum += counts[i];
    }
  };
  if (dtype == DType::int32) {
    fill(out.mutable_data<int32_t>());
  } else {
    fill(out.mutable_data<int64_t>());
  }
  return out;
}

void infer_example_outputs(InferContext& c, const ParseExampleAttrs& a, const ExampleInputs& in, int first) {
  check_attrs(a);
  check_keys(c, in.sparse_keys, a.sparse_types.size(), "sparse_keys");
  check_keys(c, in.dense_keys, a.Tdense.size(), "dense_keys");
  check_keys(c, in.ragged_keys, a.ragged_value_types.size(), "ragged_keys");
  if (c.num_inputs() - in.dense_defaults != static_cast<int>(a.Tdense.size())) {
    throw invalid_argument("{} dense_defaults for {} dense features", c.num_inputs() - in.dense_defaults,
                           a.Tdense.size());
  }
  const PartialShape &serialized = c.input(0), &names = c.input(1);
  if (names.is_static() && serialized.is_static() && !(names == PartialShape{0}) && !(names == serialized)) {
    throw invalid_argument("names of shape {} for records of shape {}", names.str(), serialized.str());
  }
  if (serialized.rank() > 1) {
    throw invalid_argument("serialized must be a scalar or a vector, got shape {}", serialized.str());
  }
  const ExampleOutputs out = outputs_of(a);
  auto put = [&](size_t i, const PartialShape& shape) { c.output(first + static_cast<int>(i), shape); };
  if (!serialized.has_rank()) {
    for (size_t i = 0; i < out.all(); ++i) put(i, PartialShape::unknown());
    return;
  }
  const int64_t rank = serialized.rank();
  const std::optional<int64_t> batch = rank == 1 ? std::optional(serialized[0]) : std::nullopt;
  for (size_t i = 0; i < out.sparse; ++i) {
    put(out.indices(i), PartialShape{kUnknownDim, rank + 1});
    put(out.values(i), PartialShape{kUnknownDim});
    put(out.shapes(i), PartialShape{rank + 1});
  }
  for (size_t i = 0; i < out.dense; ++i) put(out.dense_at(i), with_front(batch, a.dense_shapes[i]));
  for (size_t i = 0; i < out.ragged; ++i) {
    put(out.ragged_values(i), PartialShape{kUnknownDim});
    const int64_t rows = batch ? *batch : 1;
    put(out.ragged_splits(i), PartialShape{rows < 0 ? kUnknownDim : rows + 1});
  }
}

namespace {

// The first plans are the sparse features, then dense, then ragged.
std::vector<FeaturePlan> make_plans(KernelContext& c, const ParseExampleAttrs& a, const ExampleInputs& in) {
  std::vector<FeaturePlan> plans;
  const ExampleOutputs out = outputs_of(a);
  plans.reserve(out.sparse + out.dense + out.ragged);
  for (size_t i = 0; i < out.sparse; ++i) {
    plans.push_back({.key = c.in<Bytes>(in.sparse_keys)[i], .dtype = a.sparse_types[i]});
  }
  for (size_t i = 0; i < out.dense; ++i) {
    const PartialShape& shape = a.dense_shapes[i];
    FeaturePlan plan{.key = c.in<Bytes>(in.dense_keys)[i], .dtype = a.Tdense[i]};
    const Tensor& fallback = c.in(in.dense_defaults + static_cast<int>(i));
    if (fallback.dtype() != plan.dtype) {
      throw invalid_argument("the default of feature '{}' is {}, not {}", plan.key, dtype_name(fallback.dtype()),
                             dtype_name(plan.dtype));
    }
    const int64_t given = fallback.num_elements();
    if (is_variable(shape)) {
      plan.multiple = std::max<int64_t>(step_elements(shape), 1);
      if (given != 1)
        throw invalid_argument("feature '{}' is padded with one value, but {} are given", plan.key, given);
    } else {
      plan.elements = step_elements(shape);
      plan.dense = c.out(static_cast<int>(out.dense_at(i)));
      if (given > 0) plan.fallback = &fallback;
      if (given > 0 && !shape.compatible_with(fallback.shape())) {
        throw invalid_argument("the default of feature '{}' has shape {}, the feature {}", plan.key,
                               fallback.shape().str(), shape.str());
      }
    }
    plans.push_back(std::move(plan));
  }
  for (size_t i = 0; i < out.ragged; ++i) {
    plans.push_back({.key = c.in<Bytes>(in.ragged_keys)[i], .dtype = a.ragged_value_types[i]});
  }
  return plans;
}

Tensor sparse_indices(const ParsedColumns& columns, size_t plan, bool single) {
  Tensor out = Tensor::empty(DType::int64, Shape{columns.total(plan), single ? 1 : 2});
  int64_t* to = out.mutable_data<int64_t>();
  columns.each_row(plan, [&](int64_t row, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      if (!single) *to++ = row;
      *to++ = k;
    }
  });
  return out;
}

Tensor padded(const ParsedColumns& columns, size_t plan, const Tensor& filler, DType dtype, const PartialShape& shape,
              int64_t n, bool single) {
  const int64_t width = columns.longest(plan);
  Dims dims;
  if (!single) dims.push_back(n);
  dims.push_back(width / std::max<int64_t>(step_elements(shape), 1));
  for (int i = 1; i < shape.rank(); ++i) dims.push_back(shape[i]);
  Tensor out = Tensor::empty(dtype, Shape(dims));
  if (out.num_elements() > 0) columns.pad_into(plan, width, filler, out);
  return out;
}

}  // namespace

void parse_examples(KernelContext& c, const ParseExampleAttrs& a, const ExampleInputs& in, const Bytes* records,
                    int64_t n, bool single, const RecordNames& names) {
  const ExampleOutputs out = outputs_of(a);
  const ParsedColumns columns = read_columns(records, n, make_plans(c, a, in), names);
  auto put = [&](size_t i, Tensor value) { c.forward(static_cast<int>(i), std::move(value)); };
  for (size_t i = 0; i < out.sparse; ++i) {
    put(out.indices(i), sparse_indices(columns, i, single));
    put(out.values(i), columns.values(i, a.sparse_types[i]));
    const int64_t most = columns.longest(i);
    put(out.shapes(i), single ? Tensor{most} : Tensor{n, most});
  }
  for (size_t i = 0; i < out.dense; ++i) {
    if (!is_variable(a.dense_shapes[i])) continue;
    const Tensor& filler = c.in(in.dense_defaults + static_cast<int>(i));
    put(out.dense_at(i), padded(columns, out.sparse + i, filler, a.Tdense[i], a.dense_shapes[i], n, single));
  }
  for (size_t i = 0; i < out.ragged; ++i) {
    const size_t plan = out.sparse + out.dense + i;
    put(out.ragged_values(i), columns.values(plan, a.ragged_value_types[i]));
    std::vector<int64_t> counts;
    columns.each_row(plan, [&](int64_t, int64_t count) { counts.push_back(count); });
    put(out.ragged_splits(i), row_splits_of(counts, a.ragged_split_types[i]));
  }
}

void register_parse_example(Registry& r) {
  const io::Example sample{
      {{{"f", io::FloatList{{1.5f, 2.f}}}, {"i", io::Int64List{{7}}}, {"s", io::BytesList{{"x"}}}}}};
  const Tensor one = Tensor::of<Bytes>({Bytes(sample.serialize())});
  const Tensor none = Tensor::empty(DType::string, {0});
  const Tensor required = Tensor::empty(DType::int64, {0});

  r.define<ParseExampleAttrs>("ParseExampleV2")
      .in("serialized", DType::string)
      .in("names", DType::string)
      .in("sparse_keys", DType::string)
      .in("dense_keys", DType::string)
      .in("ragged_keys", DType::string)
      .in_any_list("dense_defaults", "Tdense")
      .out_list("sparse_indices", "num_sparse", DType::int64)
      .out_any_list("sparse_values", "sparse_types")
      .out_list("sparse_shapes", "num_sparse", DType::int64)
      .out_any_list("dense_values", "Tdense")
      .out_any_list("ragged_values", "ragged_value_types")
      .out_any_list("ragged_row_splits", "ragged_split_types")
      .shape([](InferContext& c, const ParseExampleAttrs& a) { infer_example_outputs(c, a, example_inputs); })
      .cpu([](KernelContext& c, const ParseExampleAttrs& a) {
        const Tensor& records = c.in(0);
        parse_examples(c, a, example_inputs, records.data<Bytes>(), records.num_elements(), records.rank() == 0,
                       {&c.in(1), records.data<Bytes>()});
      })
      .not_differentiable()
      .doc("Serialized Examples as dense, sparse and ragged tensors.")
      .sample({.in = {one, none, Tensor{"s"}, Tensor{"i"}, Tensor{"f"}, required},
               .out = {Tensor{{int64_t{0}, int64_t{0}}}, Tensor{"x"}, Tensor{int64_t{1}, int64_t{1}},
                       Tensor{int64_t{7}}, Tensor{1.5f, 2.f}, Tensor{0, 2}}},
              {.Tdense = {DType::int64},
               .num_sparse = 1,
               .sparse_types = {DType::string},
               .ragged_value_types = {DType::float32},
               .ragged_split_types = {DType::int32},
               .dense_shapes = {PartialShape{}}})
      .sample({.in = {one, none, none, Tensor{"i"}, none, Tensor(9.f)}, .error = "it holds int64s, not floats"},
              {.Tdense = {DType::float32}, .dense_shapes = {PartialShape{}}})
      .sample(
          {.in = {one, none, none, Tensor{"i"}, none, Tensor{int64_t{9}}}, .error = "has shape [1], the feature []"},
          {.Tdense = {DType::int64}, .dense_shapes = {PartialShape{}}})
      .sample({.in = {one, none, none, Tensor{"i"}, none, required}, .error = "padded with one value, but 0"},
              {.Tdense = {DType::int64}, .dense_shapes = {PartialShape{kUnknownDim}}})
      .sample(
          {.in = {one.with_shape({}), Tensor{""}, none, Tensor{"i"}, none, required}, .error = "names of shape [1]"},
          {.Tdense = {DType::int64}, .dense_shapes = {PartialShape{}}})
      .sample({.in = {one, none, none, Tensor{"k"}, none, required}, .error = "feature 'k': it is missing"},
              {.Tdense = {DType::int64}, .dense_shapes = {PartialShape{}}});
}

}  // namespace runnel
