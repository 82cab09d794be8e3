#pragma once

// Shared by the list ops.
#include "runnel/op/builder.h"
#include "runnel/ops/tensor_list.h"

namespace runnel {

// The element shape that input i spells out; what is unknown while tracing stays unknown.
PartialShape element_shape_input(const InferContext& c, int i);
PartialShape element_shape_input(const KernelContext& c, int i);

// A first dimension before a shape; unknown when the shape is.
PartialShape with_leading(int64_t first, const PartialShape& rest);

// The list that input i holds, which must have this element dtype.
const TensorList& list_input(const KernelContext& c, int i, DType element_dtype);

void check_item_fits(const TensorList& list, const Tensor& item);
void check_index(const TensorList& list, int64_t index);

// The shape of items nobody wrote: what the list and the op say together, else the shape of the items there are.
// Throws when it stays unknown.
Shape unwritten_shape(const TensorList& list, const PartialShape& asked, int64_t index);

// The item in a handle of its own; zeros when nobody wrote it. `asked` is what the op's element_shape says.
Tensor read_item(const TensorList& list, int64_t index, const PartialShape& asked);
Tensor zeros_of(DType dtype, const Shape& shape);

// The list as an output of the kernel.
inline void put_list(const KernelContext& c, int i, std::shared_ptr<const TensorList> list) {
  c.forward(i, make_list_tensor(std::move(list)));
}

// For samples: a list of these items.
Tensor sample_list(std::vector<Tensor> items, const PartialShape& element_shape = PartialShape::unknown());

}  // namespace runnel
