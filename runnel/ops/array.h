#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/op/axes.h"
#include "runnel/op/operand.h"

namespace runnel {

// --- constants ---

// A value written down, of the given dtype (its natural one when not given) and shape: a single value fills it, a
// list is reshaped to it. A std::vector, also one of vectors, is a list.
RUNNEL_API Tensor constant(const Operand& value, DType dtype = DType::invalid);
RUNNEL_API Tensor constant(const Operand& value, DType dtype, const Shape& shape);
// A literal, a list or a variable as a tensor, a literal in this dtype. A tensor stays what it is; one of another dtype
// is an Error, cast is for that.
RUNNEL_API Tensor convert_to_tensor(const Operand& value, DType dtype = DType::invalid);
RUNNEL_API Tensor fill(const ShapeArg& dims, const Operand& value);
// Zeros are empty strings for strings and false for bool.
RUNNEL_API Tensor zeros(const ShapeArg& shape, DType dtype = DType::float32);
RUNNEL_API Tensor ones(const ShapeArg& shape, DType dtype = DType::float32);
RUNNEL_API Tensor zeros_like(const Operand& input);
RUNNEL_API Tensor zeros_like(const Operand& input, DType dtype);
RUNNEL_API Tensor ones_like(const Operand& input);
RUNNEL_API Tensor ones_like(const Operand& input, DType dtype);
// Ones on the diagonal of [batch_shape..., num_rows, num_columns] (square unless num_columns is given).
RUNNEL_API Tensor eye(int64_t num_rows, int64_t num_columns = -1, const Shape& batch_shape = {},
                      DType dtype = DType::float32, SourceSite where = SourceSite::current());

// --- sequences ---

// start, start + delta, ... up to limit, which is left out.
RUNNEL_API Tensor range(const Operand& limit);
RUNNEL_API Tensor range(const Operand& start, const Operand& limit, const Operand& delta = 1);
// num values evenly spaced from start to stop, both included. Start and stop may be tensors, along a new `axis`.
RUNNEL_API Tensor linspace(const Operand& start, const Operand& stop, const Operand& num, int axis = 0);
// on_value at the position that each index names along a new axis of size `depth`, off_value elsewhere.
RUNNEL_API Tensor one_hot(const Operand& indices, const Operand& depth, int axis = -1, DType dtype = DType::float32);
RUNNEL_API Tensor one_hot(const Operand& indices, const Operand& depth, const Operand& on_value,
                          const Operand& off_value, int axis = -1);

// --- shapes ---

RUNNEL_API Tensor shape(const Operand& input, DType out_type = DType::int32);
RUNNEL_API std::vector<Tensor> shape_n(const OperandList& input, DType out_type = DType::int32);
RUNNEL_API Tensor size(const Operand& input, DType out_type = DType::int32);  // the number of elements
RUNNEL_API Tensor rank(const Operand& input);                                 // the number of dimensions
// Same elements, another shape; one size may be -1 and is worked out.
RUNNEL_API Tensor reshape(const Operand& tensor, const ShapeArg& shape);
RUNNEL_API Tensor expand_dims(const Operand& input, int axis);
// Drops the named dimensions, which must have size 1; every dimension of size 1 when none is named.
RUNNEL_API Tensor squeeze(const Operand& input, const Axes& axis = {});
RUNNEL_API Tensor broadcast_to(const Operand& input, const ShapeArg& shape);
// Dimension i of the result is dimension perm[i] of `a`; reversed when no perm is given.
RUNNEL_API Tensor transpose(const Operand& a, const Axes& perm = {}, bool conjugate = false);
RUNNEL_API Tensor invert_permutation(const Operand& x);

RUNNEL_API Tensor identity(const Operand& input);
RUNNEL_API std::vector<Tensor> identity_n(const OperandList& input);
RUNNEL_API Tensor stop_gradient(const Operand& input);  // the input, as a constant to every tape
// The input, which must have this shape (an Error otherwise); tells traced functions the shape.
RUNNEL_API Tensor ensure_shape(const Operand& input, const PartialShape& shape);

// --- joining and splitting ---

// Tensors of one shape along a new axis, and back.
RUNNEL_API Tensor stack(const OperandList& values, int axis = 0);
// `num` is worked out from the size of the axis unless that is unknown.
RUNNEL_API std::vector<Tensor> unstack(const Operand& value, int axis = 0, int64_t num = -1);
// Tensors joined along an existing axis, and back: into `num` equal parts, or into parts of the given sizes (one may
// be -1).
RUNNEL_API Tensor concat(const OperandList& values, int axis);
RUNNEL_API std::vector<Tensor> split(const Operand& value, int64_t num, int axis = 0);
RUNNEL_API std::vector<Tensor> split(const Operand& value, const ShapeArg& sizes, int axis = 0);
RUNNEL_API Tensor tile(const Operand& input, const ShapeArg& multiples);

// --- slicing ---

// Of every dimension `size` elements from `begin`; a size of -1 means the rest.
RUNNEL_API Tensor slice(const Operand& input, const ShapeArg& begin, const ShapeArg& size);

struct StridedSliceMasks {
  int64_t begin_mask = 0;        // bit i: begin[i] is ignored, the range starts at the end it comes from
  int64_t end_mask = 0;          // bit i: end[i] is ignored
  int64_t ellipsis_mask = 0;     // bit i: entry i stands for all dimensions not named
  int64_t new_axis_mask = 0;     // bit i: entry i makes a new dimension of size 1
  int64_t shrink_axis_mask = 0;  // bit i: entry i is the position begin[i], the dimension goes
};
// Python's x[begin:end:strides] for the leading dimensions. Tensor::operator() is the comfortable form.
RUNNEL_API Tensor strided_slice(const Operand& input, const ShapeArg& begin, const ShapeArg& end,
                                const ShapeArg& strides, const StridedSliceMasks& masks = {});
RUNNEL_API Tensor strided_slice(const Operand& input, const ShapeArg& begin, const ShapeArg& end);

// --- gathering ---

// Slices of params along `axis` at the given indices. With batch_dims, the leading dimensions of params and indices
// go together. On axis 0 the gradient is IndexedSlices.
RUNNEL_API Tensor gather(const Operand& params, const Operand& indices, int axis = 0, int batch_dims = 0);

// Slices of params at positions: the last dimension of indices names leading dimensions of params (after batch_dims).
RUNNEL_API Tensor gather_nd(const Operand& params, const Operand& indices, int batch_dims = 0);

// --- scattering ---

// Zeros of the given shape with each update added at the position that its index (the last dimension of indices) names.
RUNNEL_API Tensor scatter_nd(const Operand& indices, const Operand& updates, const ShapeArg& shape);

// The tensor with each update put (added, ...) at the position that its index names.
RUNNEL_API Tensor tensor_scatter_nd_update(const Operand& tensor, const Operand& indices, const Operand& updates);
RUNNEL_API Tensor tensor_scatter_nd_add(const Operand& tensor, const Operand& indices, const Operand& updates);
RUNNEL_API Tensor tensor_scatter_nd_sub(const Operand& tensor, const Operand& indices, const Operand& updates);
RUNNEL_API Tensor tensor_scatter_nd_min(const Operand& tensor, const Operand& indices, const Operand& updates);
RUNNEL_API Tensor tensor_scatter_nd_max(const Operand& tensor, const Operand& indices, const Operand& updates);

// --- padding ---

// Elements before and after each dimension, paddings[d] = {before, after}. Mode CONSTANT fills them with a value,
// REFLECT mirrors the tensor without its border element, SYMMETRIC with it.
RUNNEL_API Tensor pad(const Operand& tensor, const Operand& paddings, std::string_view mode = "CONSTANT",
                      const Operand& constant_values = 0);

// --- order ---

RUNNEL_API Tensor reverse(const Operand& tensor, const Axes& axis);
// Shifted along axes; what leaves at one end comes in at the other.
RUNNEL_API Tensor roll(const Operand& input, const Axes& shift, const Axes& axis);
// Blocks of block_size x block_size pixels laid out as channels (NHWC), and back.
RUNNEL_API Tensor space_to_depth(const Operand& input, int64_t block_size);
RUNNEL_API Tensor depth_to_space(const Operand& input, int64_t block_size);
// For each value the position in the sorted last axis where it belongs: before equal elements (side "left") or after
// them ("right").
RUNNEL_API Tensor searchsorted(const Operand& sorted_sequence, const Operand& values, std::string_view side = "left",
                               DType out_type = DType::int32);

// --- masks, grids, repetition ---

// The elements (or slices) of the tensor where the mask, which covers dimensions from `axis` on, is true.
RUNNEL_API Tensor boolean_mask(const Operand& tensor, const Operand& mask, int axis = 0);
// mask[..., j] = j < lengths[...]; maxlen is the largest length unless given. Lengths are taken in the dtype of maxlen.
RUNNEL_API Tensor sequence_mask(const Operand& lengths);
RUNNEL_API Tensor sequence_mask(const Operand& lengths, const Operand& maxlen, DType dtype = DType::bool_);
// One grid for each argument, a vector (another shape is taken flat): its values along one axis, the same along the
// others. "xy" swaps the first two axes, as for images; "ij" keeps them in order.
RUNNEL_API std::vector<Tensor> meshgrid(const OperandList& args, std::string_view indexing = "xy");
// Each element `repeats` times (one number, or one for each position of the axis); flattened when no axis is named.
RUNNEL_API Tensor repeat(const Operand& input, const Operand& repeats);
RUNNEL_API Tensor repeat(const Operand& input, const Operand& repeats, int axis);

// --- diagonals ---

struct MatrixDiagOptions {
  std::vector<int64_t> k = {0};  // one diagonal (0 the main one, above positive) or the lowest and the highest
  int64_t num_rows = -1;         // of matrix_diag: as few as hold the diagonals
  int64_t num_cols = -1;
  Tensor padding_value = {};         // 0 when not given
  std::string align = "RIGHT_LEFT";  // where shorter diagonals above and below the main one stand
};
RUNNEL_API Tensor matrix_diag(const Operand& diagonal, const MatrixDiagOptions& options = {});
RUNNEL_API Tensor matrix_diag_part(const Operand& input, const MatrixDiagOptions& options = {});
RUNNEL_API Tensor matrix_set_diag(const Operand& input, const Operand& diagonal, const MatrixDiagOptions& options = {});
// Zeros outside a band: num_lower diagonals below the main one and num_upper above it stay (negative: all).
RUNNEL_API Tensor matrix_band_part(const Operand& input, int64_t num_lower, int64_t num_upper);

namespace linalg {
inline Tensor diag(const Operand& diagonal, const MatrixDiagOptions& options = {}) {
  return matrix_diag(diagonal, options);
}
inline Tensor diag_part(const Operand& input, const MatrixDiagOptions& options = {}) {
  return matrix_diag_part(input, options);
}
inline Tensor set_diag(const Operand& input, const Operand& diagonal, const MatrixDiagOptions& options = {}) {
  return matrix_set_diag(input, diagonal, options);
}
inline Tensor band_part(const Operand& input, int64_t num_lower, int64_t num_upper) {
  return matrix_band_part(input, num_lower, num_upper);
}
}  // namespace linalg

// The rows of both, one after the other: their sum as IndexedSlices.
RUNNEL_API IndexedSlices merge_slices(const IndexedSlices& a, const IndexedSlices& b,
                                      SourceSite where = SourceSite::current());

}  // namespace runnel
