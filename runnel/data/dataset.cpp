#include "runnel/data/dataset.h"

#include "runnel/ops/io.h"

namespace runnel::data {

Paths::Paths(const char* path) : Paths(Tensor{path}) {}
Paths::Paths(const std::string& path) : Paths(Tensor{path}) {}
Paths::Paths(std::initializer_list<std::string> paths) : Paths(std::vector<std::string>(paths)) {}
Paths::Paths(const std::vector<std::string>& paths) : Paths(Tensor::of(paths)) {}
Paths::Paths(const Tensor& paths)
    : node_(from_tensor_slices(paths.defined() && paths.rank() == 0 ? paths.with_shape({1}) : paths).node()) {}

AnyDataset AnyDataset::from_tensor_slices(const Nest& components) {
  Item item;
  from_nest(components, item);
  return AnyDataset(nodes::tensor_slices(std::move(item)));
}

AnyDataset AnyDataset::from_tensors(const Nest& element) {
  Item item;
  from_nest(element, item);
  return AnyDataset(nodes::tensors(std::move(item)));
}

AnyDataset AnyDataset::zip(const std::vector<AnyDataset>& datasets) {
  std::vector<NodePtr> inputs;
  for (const AnyDataset& d : datasets) inputs.push_back(d.node());
  return AnyDataset(nodes::zip(std::move(inputs)));
}

AnyDataset AnyDataset::map(std::function<Nest(const Nest&)> f, const MapOptions& options) const {
  ItemFn made;
  made.call = [f = std::move(f)](Item& in, Item& out) { from_nest(f(to_nest(in)), out); };
  return AnyDataset(nodes::map(node(), std::move(made), options));
}

AnyDataset AnyDataset::filter(std::function<bool(const Nest&)> predicate) const {
  return AnyDataset(nodes::filter(node(), [p = std::move(predicate)](Item& in) { return p(to_nest(in)); }));
}

AnyDataset AnyDataset::flat_map(std::function<AnyDataset(const Nest&)> f) const {
  return AnyDataset(nodes::flat_map(
      node(), [f = std::move(f)](Item& in) { return f(to_nest(in)).node(); }, nullptr));
}

Dataset<std::vector<Tensor>> csv(const Paths& paths, const std::vector<Tensor>& record_defaults,
                                 const CsvOptions& options, Env& env, SourceSite where) {
  io::DecodeCsvOptions decode;
  decode.field_delim = options.field_delim;
  decode.use_quote_delim = options.use_quote_delim;
  decode.na_value = options.na_value;
  decode.select_cols = options.select_cols;
  return Dataset<Tensor>(nodes::csv_records(paths.node(), options, env))
      .map([record_defaults, decode,
            where](Tensor record) { return io::decode_csv(Operand(record, where), record_defaults, decode); },
           options.num_parallel_calls);
}

}  // namespace runnel::data
