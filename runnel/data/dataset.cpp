#include "runnel/data/dataset.h"

#include "runnel/base/format.h"

namespace runnel::data {

bool detail::decision(const Tensor& made, const char* who) {
  if (made.dtype() == DType::bool_ && made.rank() == 0) return made.item<bool>();
  throw invalid_argument("[{}] the callable gave {}{}, not a bool or a bool scalar", who, dtype_name(made.dtype()),
                         made.shape().str());
}

Paths::Paths(const char* path, SourceSite where) : Paths(Tensor{path}, where) {}
Paths::Paths(const std::string& path, SourceSite where) : Paths(Tensor{path}, where) {}
Paths::Paths(std::initializer_list<std::string> paths, SourceSite where)
    : Paths(std::vector<std::string>(paths), where) {}
Paths::Paths(const std::vector<std::string>& paths, SourceSite where) : Paths(Tensor::of(paths), where) {}
Paths::Paths(const Tensor& paths, SourceSite where)
    : node_(detail::called_at(where, [&] {
        if (!paths.defined() || paths.dtype() != DType::string || paths.rank() > 1) {
          throw invalid_argument(
              "[Paths] paths must be a string or a vector of strings, not {}",
              paths.defined() ? dtype_name(paths.dtype()) + paths.shape().str() : std::string("an empty tensor"));
        }
        return nodes::tensor_slices(detail::item_of(paths.rank() == 0 ? paths.with_shape({1}) : paths));
      })) {}

AnyDataset AnyDataset::from_tensor_slices(const Nest& components, SourceSite where) {
  return AnyDataset(detail::called_at(where, [&] { return nodes::tensor_slices(detail::item_of(components)); }));
}

AnyDataset AnyDataset::from_tensors(const Nest& element, SourceSite where) {
  return AnyDataset(detail::called_at(where, [&] { return nodes::tensors(detail::item_of(element)); }));
}

AnyDataset AnyDataset::zip(const std::vector<AnyDataset>& datasets, SourceSite where) {
  return AnyDataset(detail::called_at(where, [&] { return nodes::zip(detail::nodes_of(datasets)); }));
}

AnyDataset AnyDataset::map(std::function<Nest(const Nest&)> f, const MapOptions& options, SourceSite where) const {
  ItemFn made;
  made.call = [f = std::move(f)](Item& in, Item& out) { from_nest(f(to_nest(in)), out); };
  return AnyDataset(detail::called_at(where, [&] { return nodes::map(node(), std::move(made), options); }));
}

AnyDataset AnyDataset::filter_items(Predicate p, const SourceSite& where) const {
  return AnyDataset(detail::called_at(where, [&] { return nodes::filter(node(), std::move(p)); }));
}

AnyDataset AnyDataset::flat_map(std::function<AnyDataset(const Nest&)> f, SourceSite where) const {
  auto expand = [f = std::move(f)](Item& in) { return f(to_nest(in)).node(); };
  return AnyDataset(detail::called_at(where, [&] { return nodes::flat_map(node(), std::move(expand), nullptr); }));
}

}  // namespace runnel::data
