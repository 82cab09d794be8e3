// Complex numbers and their parts.
#include <complex>

#include "runnel/base/format.h"
#include "runnel/ops/math_common.h"

namespace runnel {

void register_complex(Registry& r) {
  r.define("Conj")
      .in("input", complexes)
      .out("output")
      .shape(like<0>)
      .cpu(elementwise([](auto x) { return std::conj(x); }))
      .grad([](const GradCtx& g) { return conj(g.dy()); })
      .doc("The complex conjugate, element by element.")
      .sample({.in = {Tensor{std::complex<float>(1, 2)}}, .out = {Tensor{std::complex<float>(1, -2)}}})
      .sample({.in = {Tensor{{std::complex<float>(0, -1)}}}, .out = {Tensor{{std::complex<float>(0, 1)}}}});
}

Tensor conj(const Operand& x) {
  if (!x.is_literal() && !is_complex(x.tensor()->dtype())) return *x.tensor();
  static const Op op("Conj");
  return op({x});
}

}  // namespace runnel
