#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "runnel/op/axes.h"
#include "runnel/op/gradient.h"
#include "runnel/op/operand.h"

namespace runnel {

// Which norm: "euclidean", "fro" (of matrices), or a number p > 0 (infinity included) for (sum |x|^p)^(1/p).
class NormOrder {
 public:
  NormOrder(const char* name) : name_(name) {}  // NOLINT: implicit
  template <class P>
    requires std::is_arithmetic_v<P>
  NormOrder(P p) : p_(static_cast<double>(p)) {}  // NOLINT

  const std::string& name() const { return name_; }  // empty for a number
  double p() const { return p_; }

 private:
  std::string name_;
  double p_ = 2;
};

// The norm of vectors along one axis, of matrices over a pair of axes, or of all elements when none is named.
// Of matrices: "fro" and "euclidean" (all elements), 1 (largest column sum), infinity (largest row sum), 2 (largest
// singular value).
RUNNEL_API Tensor norm(const Operand& tensor, const NormOrder& ord = "euclidean", const std::vector<int64_t>& axis = {},
                       bool keepdims = false);
RUNNEL_API Tensor norm(const Operand& tensor, const NormOrder& ord, int64_t axis, bool keepdims = false);

// t scaled down where its norm over `axes` is above clip_norm.
RUNNEL_API Tensor clip_by_norm(const Operand& t, const Operand& clip_norm, const Axes& axes = {});
RUNNEL_API Gradient clip_gradient_by_norm(const Gradient& t, const Operand& clip_norm);
template <std::same_as<Gradient> G>  // a Tensor would convert to it too
Gradient clip_by_norm(const G& t, const Operand& clip_norm) {
  return clip_gradient_by_norm(t, clip_norm);
}
// All scaled by one factor such that their joint norm is at most clip_norm, and the norm they had (given as use_norm
// when it is known already). Entries without a value stay so; IndexedSlices are scaled row by row. A norm that is not
// finite makes every value NaN.
RUNNEL_API std::pair<Gradients, Tensor> clip_by_global_norm(const Gradients& t_list, const Operand& clip_norm,
                                                            const Tensor& use_norm = {});
RUNNEL_API std::pair<std::vector<Tensor>, Tensor> clip_by_global_norm(const std::vector<Tensor>& t_list,
                                                                      const Operand& clip_norm,
                                                                      const Tensor& use_norm = {});

namespace linalg {
using runnel::norm;
// The square root of the sum of the squares of all elements of all tensors.
RUNNEL_API Tensor global_norm(const Gradients& t_list, SourceSite where = SourceSite::current());
RUNNEL_API Tensor global_norm(const std::vector<Tensor>& t_list, SourceSite where = SourceSite::current());
}  // namespace linalg

namespace math {
// x divided by its euclidean norm over `axis`, which counts as at least sqrt(epsilon).
RUNNEL_API Tensor l2_normalize(const Operand& x, const Axes& axis = {}, double epsilon = 1e-12);
}  // namespace math
namespace linalg {
using math::l2_normalize;
}

namespace nn {
using math::l2_normalize;
struct Moments {
  Tensor mean;
  Tensor variance;
};
// The mean and variance over `axes`. float16 is computed in float32.
RUNNEL_API Moments moments(const Operand& x, const Axes& axes, bool keepdims = false);
}  // namespace nn

}  // namespace runnel
