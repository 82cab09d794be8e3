#include "runnel/data/dataset.h"

namespace runnel::data {

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

}  // namespace runnel::data
