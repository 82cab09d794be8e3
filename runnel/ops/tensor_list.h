#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runnel/op/operand.h"

namespace runnel {

// The value of a variant tensor that holds a list of tensors: what stands under TensorArray and under the gradients of
// loops. A list never changes; a changed list is a new version that shares its items with the old one. The newest
// version is written in place, whoever still holds older ones, so that a loop of n writes costs O(n) steps also under a
// tape; changing an older version copies (the handles of) its items once.
class RUNNEL_API TensorList : public Object {
 public:
  // Items nobody wrote are undefined Tensors here; ops read them as zeros of the element shape.
  TensorList(DType element_dtype, PartialShape element_shape, int64_t size, int64_t max_num_elements = -1);
  TensorList(DType element_dtype, PartialShape element_shape, std::vector<Tensor> items);
  ~TensorList() override;
  TensorList(const TensorList&) = delete;
  TensorList& operator=(const TensorList&) = delete;

  std::string describe() const override;

  DType element_dtype() const { return element_dtype_; }
  const PartialShape& element_shape() const { return element_shape_; }  // every item fits it
  int64_t size() const { return size_; }
  int64_t max_num_elements() const { return max_num_elements_; }  // -1: no limit
  Tensor item(int64_t i) const;
  std::vector<Tensor> items() const;

  using Writes = std::vector<std::pair<int64_t, Tensor>>;  // position, new item
  // The list with another size (items past it go) and some items replaced; the later of two writes counts.
  std::shared_ptr<const TensorList> changed(int64_t size, const Writes& writes) const;
  std::shared_ptr<const TensorList> with_item(int64_t i, const Tensor& item) const {
    return changed(size_, {{i, item}});
  }
  // The items that were written, in no order.
  Writes written() const;
  size_t num_written_at_most() const;

  // How often a change had to copy items since the program started: for tests.
  static int64_t num_copies();

 private:
  class Store;
  TensorList(const TensorList& like, int64_t size, std::shared_ptr<Store> store, uint64_t version);
  static bool reaches(const Tensor& item, const Store* store);

  DType element_dtype_;
  PartialShape element_shape_;
  int64_t size_;
  int64_t max_num_elements_ = -1;
  std::shared_ptr<Store> store_;
  uint64_t version_ = 0;
};

// A variant scalar that holds the list, and back; an Error when the variant holds something else.
RUNNEL_API Tensor make_list_tensor(std::shared_ptr<const TensorList> list);
RUNNEL_API const TensorList& tensor_list(const Tensor& handle);
RUNNEL_API const TensorList& tensor_list(const VariantValue& value);

// What ZerosLike and AddN do with the elements of variant tensors.
VariantValue zeros_like_variant(const VariantValue& x);
VariantValue add_variants(const VariantValue& a, const VariantValue& b);

// The ops of lists by function, for what is built on them. An element shape is an integer vector with -1 for unknown
// sizes, or the scalar -1 when not even the rank is known.
namespace list_ops {

RUNNEL_API Tensor element_shape_tensor(const PartialShape& shape);
// The shape of t without its first dimension, as an element shape.
RUNNEL_API Tensor row_shape(const Tensor& t);

RUNNEL_API Tensor empty(const Tensor& element_shape, DType element_dtype, const Operand& max_num_elements = -1);
RUNNEL_API Tensor reserve(const Tensor& element_shape, const Operand& num_elements, DType element_dtype);
RUNNEL_API Tensor length(const Tensor& list);
RUNNEL_API Tensor element_shape(const Tensor& list, DType shape_type = DType::int32);
RUNNEL_API Tensor push_back(const Tensor& list, const Operand& item);
struct Popped {
  Tensor list;
  Tensor item;
};
RUNNEL_API Popped pop_back(const Tensor& list, const Tensor& element_shape, DType element_dtype);
RUNNEL_API Tensor get_item(const Tensor& list, const Operand& index, const Tensor& element_shape, DType element_dtype);
// With `resize`, an index past the end makes the list longer.
RUNNEL_API Tensor set_item(const Tensor& list, const Operand& index, const Operand& item, bool resize = false);
RUNNEL_API Tensor resize(const Tensor& list, const Operand& size);

RUNNEL_API Tensor from_tensor(const Operand& tensor, const Tensor& element_shape);
RUNNEL_API Tensor stack(const Tensor& list, const Tensor& element_shape, DType element_dtype,
                        int64_t num_elements = -1);
RUNNEL_API Tensor gather(const Tensor& list, const Operand& indices, const Tensor& element_shape, DType element_dtype);
RUNNEL_API Tensor scatter(const Operand& tensor, const Operand& indices, const Tensor& element_shape,
                          const Operand& num_elements = -1);
RUNNEL_API Tensor scatter_into(const Tensor& list, const Operand& tensor, const Operand& indices);
RUNNEL_API Tensor split(const Operand& tensor, const Tensor& element_shape, const Operand& lengths);
struct Concatenated {
  Tensor tensor;
  Tensor lengths;  // of the items along their first dimension, int64
};
// leading_dims are the lengths of items nobody wrote, for lists that do not know them; may be an empty vector.
RUNNEL_API Concatenated concat(const Tensor& list, const Tensor& element_shape, const Tensor& leading_dims,
                               DType element_dtype);

}  // namespace list_ops
}  // namespace runnel
