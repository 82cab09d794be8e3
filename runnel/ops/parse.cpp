// The public functions that parse Examples.
#include "runnel/ops/parse.h"

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/example_columns.h"
#include "runnel/ops/parse_plan.h"
#include "runnel/tensor/type_sets.h"

namespace runnel::io {
namespace {

Tensor keys_of(const std::vector<std::string>& keys) {
  return Tensor::of<Bytes>(std::vector<Bytes>(keys.begin(), keys.end()));
}

Tensor checked_default(const std::string& name, const Tensor& given, DType dtype) {
  if (!given.defined()) return Tensor::empty(dtype, {0});
  if (given.dtype() == dtype) return given;
  if (dtype == DType::int64 && given.dtype() == DType::int32) {  // a literal
    const auto values = given.host<int32_t>();
    return Tensor::of<int64_t>(std::vector<int64_t>(values.begin(), values.end()), given.shape());
  }
  throw invalid_argument("[parse_example] the default of feature '{}' is {}, not {}", name, dtype_name(given.dtype()),
                         dtype_name(dtype));
}

// The default in the shape of its feature, as the op wants it; one value stands for all. None stays none.
Tensor fitted_default(const std::string& name, const Tensor& given, DType dtype, const PartialShape& shape) {
  const Tensor value = checked_default(name, given, dtype);
  if (value.num_elements() == 0) return value;
  Tensor fitted = Tensor::empty(dtype, Shape(shape));
  if (value.num_elements() != 1 && value.num_elements() != fitted.num_elements()) {
    throw invalid_argument("[parse_example] the default of feature '{}' has shape {}, the feature {}", name,
                           value.shape().str(), shape.str());
  }
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> != dtype) return;
    for (int64_t i = 0; i < fitted.num_elements(); ++i) {
      fitted.mutable_data<T>()[i] = value.data<T>()[value.num_elements() == 1 ? 0 : i];
    }
  });
  return fitted;
}

// The value that fills up lists: zero or "" unless it is given.
Tensor padding_value(const std::string& name, const Tensor& given, DType dtype) {
  if (given.defined() && given.num_elements() > 1) {
    throw invalid_argument("[parse_example] feature '{}' is padded with one value, but {} are given", name,
                           given.num_elements());
  }
  const Tensor value = checked_default(name, given, dtype);
  if (value.num_elements() == 1) return value.with_shape({});
  Tensor zero = Tensor::empty(dtype, {});
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> == dtype) *zero.mutable_data<T>() = T();
  });
  return zero;
}

PartialShape shape_of(const std::string& name, const std::vector<int64_t>& dims, bool steps) {
  for (int64_t d : dims) {
    if (d < 0) {
      throw invalid_argument("[parse_example] feature '{}': its shape [{}] must be fully known", name,
                             comma_separated(dims));
    }
  }
  Dims all;
  if (steps) all.push_back(kUnknownDim);
  for (int64_t d : dims) all.push_back(d);
  return PartialShape(all);
}

// The feature that a partition's numbers stand in; "" where there is none.
std::string key_of(const std::string& name, const RaggedPartition& partition) {
  if (const auto* even = std::get_if<UniformRowLength>(&partition)) {
    if (even->length < 1) throw invalid_argument("[parse_example] feature '{}': rows of {} values", name, even->length);
    return "";
  }
  const std::string key = std::visit(
      [](const auto& p) -> std::string {
        if constexpr (requires { p.key; }) {
          return p.key;
        } else {
          return "";
        }
      },
      partition);
  if (key.empty()) throw invalid_argument("[parse_example] feature '{}': a partition without a key", name);
  return key;
}

const char* form_name(FeatureForm form) {
  switch (form) {
    case FeatureForm::dense: return "dense: use parsed[\"name\"]";
    case FeatureForm::sparse: return "of any length: use parsed.sparse(\"name\")";
    case FeatureForm::ragged: return "ragged: use parsed.ragged(\"name\")";
  }
  return "";
}

ExampleOutputs outputs_of(const ExampleSpec::Plan& plan) {
  return {static_cast<size_t>(plan.attrs.num_sparse), plan.attrs.Tdense.size(), plan.attrs.ragged_value_types.size()};
}

void require_allow_missing(const ExampleSpec::Plan& plan) {
  if (plan.missing_not_allowed.empty()) return;
  throw invalid_argument(
      "[parse_example] feature '{}': outside of feature lists a FixedLenSequenceFeature needs "
      "allow_missing = true",
      plan.missing_not_allowed);
}

Tensor no_names() {
  static const Tensor none = Tensor::empty(DType::string, {0});
  return none;
}

ParsedExample parse(const Operand& serialized, const ExampleSpec& features, const Tensor& names, bool single) {
  static const Op<ParseExampleAttrs> op("ParseExampleV2");
  const ExampleSpec::Plan& plan = features.plan();
  require_allow_missing(plan);
  std::vector<Arg> args = {serialized, names, plan.sparse_keys, plan.dense_keys, plan.ragged_keys};
  args.insert(args.end(), plan.dense_defaults.begin(), plan.dense_defaults.end());
  return {features.shared(), op.many(args, plan.attrs), single};
}

ParsedSequence parse_sequences(const Operand& serialized, const ExampleSpec& context, const ExampleSpec& sequence,
                               const Tensor& names) {
  static const Op<ParseSequenceAttrs> op("ParseSequenceExampleV2");
  const ExampleSpec::Plan &c = context.plan(), &s = sequence.plan();
  require_allow_missing(c);
  std::vector<bool> missing;
  std::vector<PartialShape> shapes;
  for (const ExampleSpec::Plan::Entry& entry : s.entries) {
    if (entry.form != FeatureForm::dense) continue;
    const auto* list = std::get_if<FixedLenSequenceFeature>(&s.features.at(entry.name));
    if (list == nullptr) {
      throw invalid_argument(
          "[parse_sequence_example] feature list '{}': lists are FixedLenSequenceFeature, "
          "VarLenFeature or RaggedFeature",
          entry.name);
    }
    missing.push_back(list->allow_missing);
    shapes.push_back(shape_of(entry.name, list->shape, false));
  }
  const ParseSequenceAttrs attrs{.Ncontext_sparse = c.attrs.num_sparse,
                                 .Tcontext_dense = c.attrs.Tdense,
                                 .context_sparse_types = c.attrs.sparse_types,
                                 .context_ragged_value_types = c.attrs.ragged_value_types,
                                 .context_ragged_split_types = c.attrs.ragged_split_types,
                                 .context_dense_shapes = c.attrs.dense_shapes,
                                 .Nfeature_list_sparse = s.attrs.num_sparse,
                                 .Nfeature_list_dense = static_cast<int64_t>(s.attrs.Tdense.size()),
                                 .feature_list_dense_types = s.attrs.Tdense,
                                 .feature_list_sparse_types = s.attrs.sparse_types,
                                 .feature_list_ragged_value_types = s.attrs.ragged_value_types,
                                 .feature_list_ragged_split_types = s.attrs.ragged_split_types,
                                 .feature_list_dense_shapes = shapes};
  const Tensor empty_if_missing = Tensor::of<bool>(missing, Shape{static_cast<int64_t>(missing.size())});
  std::vector<Arg> args = {serialized,    names,        c.sparse_keys, c.dense_keys,    c.ragged_keys,
                           s.sparse_keys, s.dense_keys, s.ragged_keys, empty_if_missing};
  args.insert(args.end(), c.dense_defaults.begin(), c.dense_defaults.end());
  const std::vector<Tensor> all = op.many(args, attrs);

  const auto context_count = static_cast<ptrdiff_t>(outputs_of(c).all());
  const bool single = serialized.value().partial_shape().rank() == 0;
  const ParsedExample parsed(context.shared(), {all.begin(), all.begin() + context_count}, single);
  ParsedSequence result{.context = parsed.nest()};
  const size_t sparse = s.attrs.sparse_types.size(), dense = s.attrs.Tdense.size();
  const size_t ragged = s.attrs.ragged_value_types.size();
  const Tensor* at = all.data() + context_count;
  std::map<std::string, Nest> sequences, lengths;
  for (const ExampleSpec::Plan::Entry& entry : s.entries) {
    const size_t i = entry.index;
    if (entry.form == FeatureForm::sparse) {
      sequences[entry.name] = SparseTensor{at[i], at[sparse + i], at[2 * sparse + i]};
    } else if (entry.form == FeatureForm::dense) {
      sequences[entry.name] = at[3 * sparse + i];
      lengths[entry.name] = at[3 * sparse + dense + i];
    } else {
      const Tensor* ragged_at = at + 3 * sparse + 2 * dense;
      const auto read = [&](size_t k) -> RaggedValues { return {ragged_at[k], ragged_at[2 * ragged + k]}; };
      std::vector<RaggedValues> partitions;
      for (const size_t k : entry.partitions) partitions.push_back(read(k));
      PartitionedValues made =
          partitioned(entry.name, std::get<RaggedFeature>(s.features.at(entry.name)), read(i), partitions);
      made.splits.insert(made.splits.begin(), made.rows);
      if (!single) made.splits.insert(made.splits.begin(), ragged_at[ragged + i]);
      sequences[entry.name] = RaggedTensor::from_nested_row_splits(made.flat, made.splits);
    }
  }
  result.sequences = sequences;
  result.lengths = lengths;
  return result;
}

}  // namespace

const ExampleSpec::Plan::Entry& ExampleSpec::Plan::find(std::string_view name) const {
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry;
  }
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  throw make_error(Code::not_found, "[parse_example] no feature is called '{}'; there are: {}", name,
                   fmt::join(names, ", "));
}

namespace {

std::shared_ptr<const ExampleSpec::Plan> plan_for(const std::map<std::string, FeatureSpec>& features) {
  auto plan = std::make_shared<ExampleSpec::Plan>();
  plan->features = features;
  std::vector<std::string> sparse, dense, ragged;
  for (const auto& [name, feature] : features) {
    auto add = [&, &name = name](std::vector<std::string>& keys, FeatureForm form, const std::string& key) {
      plan->entries.push_back({name, form, keys.size()});
      keys.push_back(key);
    };
    const DType dtype = std::visit([](const auto& f) { return f.dtype; }, feature);
    try {
      check_feature_dtype(dtype, "features");
    } catch (const Error& e) {
      throw make_error(e.code(), "[parse_example] feature '{}': {}", name, e.what());
    }
    if (const auto* fixed = std::get_if<FixedLenFeature>(&feature)) {
      add(dense, FeatureForm::dense, name);
      plan->attrs.Tdense.push_back(dtype);
      const PartialShape shape = shape_of(name, fixed->shape, false);
      plan->attrs.dense_shapes.push_back(shape);
      plan->dense_defaults.push_back(fitted_default(name, fixed->default_value, dtype, shape));
    } else if (const auto* steps = std::get_if<FixedLenSequenceFeature>(&feature)) {
      add(dense, FeatureForm::dense, name);
      if (!steps->allow_missing) plan->missing_not_allowed = name;
      plan->attrs.Tdense.push_back(dtype);
      plan->attrs.dense_shapes.push_back(shape_of(name, steps->shape, true));
      plan->dense_defaults.push_back(padding_value(name, steps->default_value, dtype));
    } else if (std::holds_alternative<VarLenFeature>(feature)) {
      add(sparse, FeatureForm::sparse, name);
      plan->attrs.sparse_types.push_back(dtype);
    } else {
      const auto& any = std::get<RaggedFeature>(feature);
      add(ragged, FeatureForm::ragged, any.value_key.empty() ? name : any.value_key);
      plan->attrs.ragged_value_types.push_back(dtype);
      plan->attrs.ragged_split_types.push_back(any.row_splits_dtype);
    }
  }
  // The numbers of partitions are read like ragged features, each once, though nobody sees them.
  std::map<std::pair<std::string, DType>, size_t> numbers;
  for (ExampleSpec::Plan::Entry& entry : plan->entries) {
    const auto* any = std::get_if<RaggedFeature>(&features.at(entry.name));
    for (const RaggedPartition& partition : any != nullptr ? any->partitions : std::vector<RaggedPartition>{}) {
      const std::string key = key_of(entry.name, partition);
      if (key.empty()) {
        entry.partitions.push_back(0);
        continue;
      }
      const auto [at, is_new] = numbers.try_emplace({key, any->row_splits_dtype}, ragged.size());
      entry.partitions.push_back(at->second);
      if (!is_new) continue;
      ragged.push_back(key);
      plan->attrs.ragged_value_types.push_back(DType::int64);
      plan->attrs.ragged_split_types.push_back(any->row_splits_dtype);
    }
  }
  plan->attrs.num_sparse = static_cast<int64_t>(sparse.size());
  plan->sparse_keys = keys_of(sparse);
  plan->dense_keys = keys_of(dense);
  plan->ragged_keys = keys_of(ragged);
  return plan;
}

}  // namespace

ExampleSpec::ExampleSpec(std::initializer_list<std::pair<const std::string, FeatureSpec>> features, CallSite where)
    : ExampleSpec(std::map<std::string, FeatureSpec>(features), where) {}

ExampleSpec::ExampleSpec(const std::map<std::string, FeatureSpec>& features, CallSite where)
    : plan_(at_caller(where.site, [&] { return plan_for(features); })) {}

ParsedExample::ParsedExample(std::shared_ptr<const ExampleSpec::Plan> plan, std::vector<Tensor> outputs, bool single)
    : plan_(std::move(plan)), outputs_(std::move(outputs)), single_(single) {
  const ExampleOutputs out = outputs_of(*plan_);
  const auto read = [&](size_t i) -> RaggedValues {
    return {outputs_[out.ragged_values(i)], outputs_[out.ragged_splits(i)]};
  };
  for (const ExampleSpec::Plan::Entry& entry : plan_->entries) {
    if (entry.form != FeatureForm::ragged) continue;
    const auto& feature = std::get<RaggedFeature>(plan_->features.at(entry.name));
    std::vector<RaggedValues> partitions;
    for (const size_t i : entry.partitions) partitions.push_back(read(i));
    PartitionedValues made = partitioned(entry.name, feature, read(entry.index), partitions);
    if (!single_) made.splits.insert(made.splits.begin(), made.rows);
    ragged_.push_back(made.splits.empty() ? Nest(made.flat)
                                          : Nest(RaggedTensor::from_nested_row_splits(made.flat, made.splits)));
  }
}

const Tensor& ParsedExample::operator[](const AskedName& asked) const {
  return at_caller(asked.where, [&]() -> const Tensor& {
    const ExampleSpec::Plan::Entry& entry = plan_->find(asked.name);
    const ExampleOutputs out = outputs_of(*plan_);
    if (entry.form == FeatureForm::dense) return outputs_[out.dense_at(entry.index)];
    if (entry.form == FeatureForm::ragged && ragged_[entry.index].is_leaf()) return ragged_[entry.index].leaf();
    throw invalid_argument("[parse_example] feature '{}' is {}", asked.name, form_name(entry.form));
  });
}

Tensor& ParsedExample::operator[](const AskedName& name) { return const_cast<Tensor&>(std::as_const(*this)[name]); }

SparseTensor ParsedExample::sparse(const AskedName& asked) const {
  return at_caller(asked.where, [&]() -> SparseTensor {
    const ExampleSpec::Plan::Entry& entry = plan_->find(asked.name);
    if (entry.form != FeatureForm::sparse) {
      throw invalid_argument("[parse_example] feature '{}' is {}", asked.name, form_name(entry.form));
    }
    const ExampleOutputs out = outputs_of(*plan_);
    return {outputs_[out.indices(entry.index)], outputs_[out.values(entry.index)], outputs_[out.shapes(entry.index)]};
  });
}

RaggedTensor ParsedExample::ragged(const AskedName& asked) const {
  return at_caller(asked.where, [&]() -> RaggedTensor {
    const ExampleSpec::Plan::Entry& entry = plan_->find(asked.name);
    const bool is_ragged = entry.form == FeatureForm::ragged;
    if (is_ragged && !ragged_[entry.index].is_leaf()) return ragged_[entry.index].as<RaggedTensor>();
    throw invalid_argument("[parse_example] feature '{}' is {}", asked.name,
                           form_name(is_ragged ? FeatureForm::dense : entry.form));
  });
}

Nest ParsedExample::nest() const {
  std::map<std::string, Nest> all;
  for (const ExampleSpec::Plan::Entry& entry : plan_->entries) {
    if (entry.form == FeatureForm::sparse) {
      all[entry.name] = sparse(entry.name);
    } else if (entry.form == FeatureForm::ragged) {
      all[entry.name] = ragged_[entry.index];
    } else {
      all[entry.name] = (*this)[entry.name];
    }
  }
  return all;
}

ParsedExample parse_example(const Operand& serialized, const ExampleSpec& features, const Tensor& names) {
  return composed(serialized.where(), [&]() -> ParsedExample {
    if (serialized.value().partial_shape().rank() == 0) {
      throw invalid_argument(
          "[parse_example] takes a vector of serialized Examples; for one there is "
          "parse_single_example");
    }
    return parse(serialized, features, names.defined() ? names : no_names(), false);
  });
}

ParsedExample parse_single_example(const Operand& serialized, const ExampleSpec& features, const std::string& name) {
  return composed(serialized.where(), [&]() -> ParsedExample {
    const PartialShape shape = serialized.value().partial_shape();
    if (shape.rank() > 0) {
      throw invalid_argument(
          "[parse_single_example] takes one serialized Example, got shape {}; for a batch there is "
          "parse_example",
          shape.str());
    }
    return parse(serialized, features, name.empty() ? no_names() : Tensor(name), true);
  });
}

ParsedSequence parse_single_sequence_example(const Operand& serialized, const ExampleSpec& context_features,
                                             const ExampleSpec& sequence_features, const std::string& name) {
  return composed(serialized.where(), [&] {
    return parse_sequences(serialized, context_features, sequence_features, name.empty() ? no_names() : Tensor(name));
  });
}

ParsedSequence parse_sequence_example(const Operand& serialized, const ExampleSpec& context_features,
                                      const ExampleSpec& sequence_features, const Tensor& names) {
  return composed(serialized.where(), [&] {
    return parse_sequences(serialized, context_features, sequence_features, names.defined() ? names : no_names());
  });
}

}  // namespace runnel::io
