// Complex numbers and their parts.
#include <complex>
#include <numbers>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math_common.h"

namespace runnel {
namespace {

DType part_dtype(DType complex) { return complex == DType::complex64 ? DType::float32 : DType::float64; }

struct PartAttrs {
  DType Tout = DType::float32;
  static constexpr auto fields() {
    return field_list(field("Tout", &PartAttrs::Tout, {.types = Types<float, double>::mask}));
  }
};
struct ComplexAttrs {
  DType Tout = DType::complex64;
  static constexpr auto fields() { return field_list(field("Tout", &ComplexAttrs::Tout, {.types = complexes.mask})); }
};

constexpr auto part_shape = [](InferContext& c, const PartAttrs& a) {
  if (a.Tout != part_dtype(c.dtype(0))) {
    throw invalid_argument("a part of {} cannot be {}", dtype_name(c.dtype(0)), dtype_name(a.Tout));
  }
  c.output(c.input(0));
};

Tensor part(const char* name, const Operand& x) {
  const Op<PartAttrs> op(name);
  const DType dtype = x.is_literal() ? x.natural_dtype() : x.tensor()->dtype();
  return op({x}, {.Tout = part_dtype(dtype)});
}

bool is_real(const Operand& x) { return !is_complex(x.is_literal() ? x.natural_dtype() : x.tensor()->dtype()); }

constexpr std::complex<double> kI(0, 1);

}  // namespace

void register_complex(Registry& r) {
  // Stated in 64 bits, so that Tout stays right when gradients are checked in float64.
  using C = std::complex<double>;
  const auto z = [](const std::vector<C>& values) { return Tensor::of<C>(values); };
  const auto v = [](const std::vector<double>& values) { return Tensor::of<double>(values); };
  const PartAttrs wide{.Tout = DType::float64};

  r.define("Conj")
      .type("T", complexes, DType::complex64)
      .in("input")
      .out("output")
      .shape(like<0>)
      .cpu(elementwise([](auto x) { return std::conj(x); }))
      .grad([](const GradCtx& g) { return conj(g.dy()); })
      .doc("The complex conjugate, element by element.")
      .sample({.in = {z({{1, 2}})}, .out = {z({{1, -2}})}})
      .sample({.in = {z({{0, -1}, {2, 0}})}, .out = {z({{0, 1}, {2, 0}})}});
  r.define<ComplexAttrs>("Complex")
      .type("T", Types<float, double>{}, DType::float32)
      .in("real")
      .in("imag")
      .out("out", "Tout")
      .shape([](InferContext& c, const ComplexAttrs& a) {
        if (!is_complex(a.Tout) || part_dtype(a.Tout) != c.dtype(0)) {
          throw invalid_argument("{} parts cannot make {}", dtype_name(c.dtype(0)), dtype_name(a.Tout));
        }
        c.output(broadcast_shapes(c.input(0), c.input(1)));
      })
      .cpu(elementwise([](auto x, auto y) { return std::complex<decltype(x)>(x, y); }))
      .grad([](const GradCtx& g) {
        return binary_gradients(
            g, [&] { return real(g.dy()); }, [&] { return imag(g.dy()); });
      })
      .doc("real + i imag, element by element.")
      .sample({.in = {v({1, 2}), v({3, -4})}, .out = {z({{1, 3}, {2, -4}})}}, {.Tout = DType::complex128})
      .sample({.in = {v({1}), v({3, -4})}, .out = {z({{1, 3}, {1, -4}})}}, {.Tout = DType::complex128})
      .sample({.in = {Tensor(1.f), Tensor(1.f)}, .error = "cannot make"}, {.Tout = DType::complex128});
  r.define<PartAttrs>("Real")
      .type("T", complexes, DType::complex64)
      .in("input")
      .out("output", "Tout")
      .shape(part_shape)
      .cpu(elementwise([](auto x) { return x.real(); }))
      .grad([](const GradCtx& g) { return cast(g.dy(), g.x().dtype()); })
      .doc("The real part.")
      .sample({.in = {z({{1, 2}, {-3, 4}})}, .out = {v({1, -3})}}, wide)
      .sample({.in = {z({{1, 2}})}, .error = "cannot be float32"});
  r.define<PartAttrs>("Imag")
      .type("T", complexes, DType::complex64)
      .in("input")
      .out("output", "Tout")
      .shape(part_shape)
      .cpu(elementwise([](auto x) { return x.imag(); }))
      .grad([](const GradCtx& g) { return cast(g.dy(), g.x().dtype()) * kI; })
      .doc("The imaginary part.")
      .sample({.in = {z({{1, 2}, {-3, 4}})}, .out = {v({2, 4})}}, wide)
      .sample({.in = {z({{1, 2}})}, .error = "cannot be float32"});
  r.define<PartAttrs>("Angle")
      .type("T", complexes, DType::complex64)
      .in("input")
      .out("output", "Tout")
      .shape(part_shape)
      .cpu(elementwise([](auto x) { return std::arg(x); }))
      .grad([](const GradCtx& g) { return cast(g.dy(), g.x().dtype()) * kI / conj(g.x()); })
      .doc("The argument of complex numbers, in (-pi, pi].")
      .sample({.in = {z({{1, 1}, {-1, 1}})}, .out = {v({0.78539816339744831, 2.3561944901923448})}}, wide)
      .sample({.in = {z({{1, -2}})}, .out = {v({-1.1071487177940904})}}, wide);
  r.define<PartAttrs>("ComplexAbs")
      .type("T", complexes, DType::complex64)
      .in("x")
      .out("y", "Tout")
      .shape(part_shape)
      .cpu(elementwise([](auto x) { return std::abs(x); }))
      .grad([](const GradCtx& g) { return cast(g.dy(), g.x().dtype()) * sign(g.x()); })
      .doc("The modulus of complex numbers.")
      .sample({.in = {z({{3, -4}, {0, 2}})}, .out = {v({5, 2})}}, wide)
      .sample({.in = {z({{-1, 0}})}, .out = {v({1})}}, wide)
      .sample({.in = {z({{1, 2}})}, .error = "cannot be float32"});
}

Tensor abs(const Operand& x) {
  return composed(x.where(), [&]() -> Tensor {
    static const Op op("Abs");
    return is_real(x) ? op({x}) : part("ComplexAbs", x);
  });
}

Tensor conj(const Operand& x) {
  return composed(x.where(), [&]() -> Tensor {
    if (!x.is_literal() && !is_complex(x.tensor()->dtype())) return *x.tensor();
    static const Op op("Conj");
    return op({x});
  });
}

Tensor complex(const Operand& real, const Operand& imag) {
  static const Op<ComplexAttrs> op("Complex");
  const Tensor* known = real.tensor() ? real.tensor() : imag.tensor();
  const bool wide = known && known->defined() && known->dtype() == DType::float64;
  return op({real, imag}, {.Tout = wide ? DType::complex128 : DType::complex64});
}

Tensor real(const Operand& input) {
  return composed(input.where(), [&] { return is_real(input) ? input.value() : part("Real", input); });
}
Tensor imag(const Operand& input) {
  return composed(input.where(), [&] { return is_real(input) ? zeros_like(input) : part("Imag", input); });
}
Tensor angle(const Operand& input) {
  return composed(input.where(), [&]() -> Tensor {
    if (!is_real(input)) return part("Angle", input);
    const Tensor x = input.value();
    return where(x < 0, std::numbers::pi, zeros_like(x));
  });
}

}  // namespace runnel
