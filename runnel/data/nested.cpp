#include "runnel/data/nested.h"

#include "runnel/base/format.h"
#include "runnel/data/node.h"
#include "runnel/tensor/handle.h"

namespace runnel::data {
namespace {

class DatasetObject : public Object {
 public:
  explicit DatasetObject(NodePtr node) : node(std::move(node)) {}
  std::string describe() const override { return "Dataset " + node->name(); }
  const NodePtr node;
};

// Gives NestOf a composite with the spec of a dataset.
struct Probe {
  Tensor variant;
  std::vector<Tensor> components() const { return {variant}; }
  CompositeSpecPtr composite_spec() const { return DatasetSpec::instance(); }
  static Probe from_components(const CompositeSpecPtr&, const std::vector<Tensor>& parts) { return {parts.at(0)}; }
};

class ListNode : public IndexedNode {
 public:
  ListNode(std::vector<Item> items, ElementSpec spec)
      : items_(std::make_shared<std::vector<Item>>(std::move(items))), spec_(std::move(spec)) {}
  std::string name() const override { return "List"; }
  ElementSpec element_spec() const override { return spec_; }
  int64_t cardinality() const override { return static_cast<int64_t>(items_->size()); }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context&) const override {
    struct View : Indexed {
      std::shared_ptr<const std::vector<Item>> items;
      int64_t size() const override { return static_cast<int64_t>(items->size()); }
      void compute(int64_t i, Item& out) const override { out = (*items)[static_cast<size_t>(i)]; }
    };
    auto view = std::make_shared<View>();
    view->items = items_;
    return view;
  }

 private:
  std::shared_ptr<const std::vector<Item>> items_;
  ElementSpec spec_;
};

}  // namespace

const CompositeSpecPtr& DatasetSpec::instance() {
  static const CompositeSpecPtr made = std::make_shared<DatasetSpec>();
  return made;
}

Tensor to_variant(NodePtr node) {
  const Tensor t = Tensor::empty(DType::variant, {});
  t.mutable_data<VariantValue>()->object = std::make_shared<DatasetObject>(std::move(node));
  return t;
}

NodePtr from_variant(const Tensor& variant) {
  if (variant.defined() && variant.dtype() == DType::variant) {
    const auto* object = held_as<DatasetObject>(variant);
    if (object != nullptr) return object->node;
  }
  throw invalid_argument("a tensor that should refer to a dataset does not");
}

const Structure* dataset_structure() {
  static const Structure* const made = structure_of(Nest(Probe{Tensor(0)}));
  return made;
}

NodePtr list_node(std::vector<Item> items, ElementSpec spec) {
  return std::make_shared<ListNode>(std::move(items), std::move(spec));
}

}  // namespace runnel::data
