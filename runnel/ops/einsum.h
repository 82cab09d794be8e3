#pragma once

#include <string_view>
#include <vector>

#include "runnel/op/operand.h"

namespace runnel {

// Sums of products written with labels: einsum("bij,bjk->bik", {a, b}). A label stands for a dimension; labels that the
// output leaves out are summed over, one that repeats within an operand takes the diagonal, "..." stands for
// dimensions that broadcast. Without "->" the output has the labels that appear once, in alphabetical order.
RUNNEL_API Tensor einsum(std::string_view equation, const OperandList& operands);
template <class T>
  requires std::is_constructible_v<Operand, const T&>
Tensor einsum(std::string_view equation, const T& x, SourceSite where = SourceSite::current()) {
  return einsum(equation, OperandList(std::vector<Tensor>{Operand(x).value()}, where));
}
inline Tensor einsum(std::string_view equation, const Operand& x, const Operand& y) {
  return einsum(equation, OperandList(std::vector<Tensor>{x.value(), y.value()}, x.where()));
}
inline Tensor einsum(std::string_view equation, const Operand& x, const Operand& y, const Operand& z) {
  return einsum(equation, OperandList(std::vector<Tensor>{x.value(), y.value(), z.value()}, x.where()));
}

// The sum of products over pairs of axes: the last `axes` of a with the first of b, or the axes listed for each. The
// result has the other axes of a, then those of b.
RUNNEL_API Tensor tensordot(const Operand& a, const Operand& b, int64_t axes);
RUNNEL_API Tensor tensordot(const Operand& a, const Operand& b, const std::vector<int64_t>& axes_a,
                            const std::vector<int64_t>& axes_b);
namespace linalg {
using runnel::einsum;
using runnel::tensordot;
}  // namespace linalg

}  // namespace runnel
