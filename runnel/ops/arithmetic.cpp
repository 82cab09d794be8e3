// Sums, products, extremes, absolute values and signs.
#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math_common.h"
#include "runnel/ops/tensor_list.h"

namespace runnel {
namespace {

struct Plus {
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(wrapping(x) + wrapping(y));
  }
};

// A bound of ClipByValue is a scalar or as large as what it bounds.
bool bounds(const PartialShape& bound, const PartialShape& t) {
  return (bound.has_rank() && bound.rank() == 0) || bound.compatible_with(t);
}
void clip_shape(InferContext& c) {
  if (!bounds(c.input(1), c.input(0)) || !bounds(c.input(2), c.input(0))) {
    throw invalid_argument("the bounds must be scalars or have the shape of t, {}, got {} and {}", c.input(0).str(),
                           c.input(1).str(), c.input(2).str());
  }
  c.output(c.input(0));
}

void register_sums(Registry& r) {
  r.define("AddV2")
      .in("x", numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(fusible(Plus{}))
      .grad([](const GradCtx& g) {
        return binary_gradients(
            g, [&] { return g.dy(); }, [&] { return g.dy(); });
      })
      .commutative()
      .post_op("BiasAdd")
      .grad_reads({})
      .doc("x + y, element by element.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{10.f, 20.f, 30.f}}, .out = {Tensor{11.f, 22.f, 33.f}}})
      .sample({.in = {Tensor{{1.f}, {2.f}}, Tensor{10.f, 20.f}}, .out = {Tensor{{11.f, 21.f}, {12.f, 22.f}}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{1.f, 2.f, 3.f}}, .error = "do not broadcast"});
  r.alias("Add", "AddV2");

  r.define("Sub")
      .in("x", numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(fusible([](auto x, auto y) { return static_cast<decltype(x)>(wrapping(x) - wrapping(y)); }))
      .grad([](const GradCtx& g) {
        return binary_gradients(
            g, [&] { return g.dy(); }, [&] { return negative(g.dy()); });
      })
      .same_as([](InferContext& c) { return c.is_scalar(1, 0) ? 0 : -1; })  // x + 0 is not: -0 + 0 is 0
      .grad_reads({})
      .doc("x - y, element by element.")
      .sample(
          {.in = {Tensor{1.f, 2.f}, Tensor{{10.f, 20.f}, {0.5f, 1.f}}}, .out = {Tensor{{-9.f, -18.f}, {0.5f, 1.f}}}})
      .sample({.in = {Tensor{3, 1}, Tensor(1)}, .out = {Tensor{2, 0}}});

  r.define("AddN")
      .type("T", numbers + Types<VariantValue>{})
      .in_list("inputs", "N")
      .at_least(1)
      .out("sum")
      .shape([](InferContext& c) {
        PartialShape all = c.input(0);
        for (int i = 1; i < c.num_inputs(); ++i) {
          if (!all.compatible_with(c.input(i))) {
            throw invalid_argument("all shapes must be the same: {} and {}", c.input(0).str(), c.input(i).str());
          }
          all = all.merged_with(c.input(i));
        }
        c.output(all);
      })
      .cpu([]<class T>(KernelContext& c) {
        T* y = c.out<T>();
        if constexpr (std::is_same_v<T, VariantValue>) {
          for (int64_t k = 0; k < c.out().num_elements(); ++k) {
            y[k] = c.in<T>(0)[k];
            for (int i = 1; i < c.num_inputs(); ++i) y[k] = add_variants(y[k], c.in<T>(i)[k]);
          }
        } else {
          const cpu::BinaryKernel plus = cpu::binary_kernels<Plus, T, T>().vv;
          const cpu::NoAttrs none;
          parallel_for(c.out().num_elements(), cpu::kGrain, [&](int64_t begin, int64_t end) {
            if (c.num_inputs() == 1) std::copy(c.in<T>(0) + begin, c.in<T>(0) + end, y + begin);
            for (int i = 1; i < c.num_inputs(); ++i) {
              plus((i == 1 ? c.in<T>(0) : y) + begin, c.in<T>(i) + begin, y + begin, end - begin, &none);
            }
          });
        }
      })
      .grad([](const GradCtx& g) { return Gradients(static_cast<size_t>(g.num_inputs()), g.raw_dy()); })
      .grad_reads({})
      .doc("The sum of tensors of one shape; lists are added item by item.")
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{10.f, 20.f}, Tensor{100.f, 200.f}}, .out = {Tensor{111.f, 222.f}}})
      .sample({.in = {Tensor{1.f, 2.f}}, .out = {Tensor{1.f, 2.f}}})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor(1.f)}, .error = "all shapes must be the same"});
}

void register_products(Registry& r) {
  r.define("Mul")
      .in("x", numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(fusible([](auto x, auto y) { return static_cast<decltype(x)>(wrapping(x) * wrapping(y)); }))
      .grad([](const GradCtx& g) {
        return binary_gradients(
            g, [&] { return g.dy() * conj(g.x(1)); }, [&] { return g.dy() * conj(g.x(0)); });
      })
      .commutative()
      .same_as([](InferContext& c) { return c.is_scalar(1, 1)   ? 0
                                            : c.is_scalar(0, 1) ? 1
                                                                : -1; })
      .grad_reads({0, 1})
      .doc("x * y, element by element.")
      .sample({.in = {Tensor{1.f, -2.f, 3.f}, Tensor(0.5f)}, .out = {Tensor{0.5f, -1.f, 1.5f}}})
      .sample({.in = {Tensor{{1.f}, {2.f}}, Tensor{3.f, 4.f}}, .out = {Tensor{{3.f, 4.f}, {6.f, 8.f}}}});

  r.define("MulNoNan")
      .in("x", floating_or_complex)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(elementwise([](auto x, auto y) { return y == decltype(y)(0) ? decltype(x)(0) : x * y; }))
      .grad([](const GradCtx& g) {
        return binary_gradients(
            g, [&] { return multiply_no_nan(g.dy(), conj(g.x(1))); },
            [&] { return multiply_no_nan(conj(g.x(0)), g.dy()); });
      })
      .grad_reads({0, 1})
      .doc("x * y, and 0 wherever y is 0, even where x is infinite or NaN.")
      .sample({.in = {Tensor{1.f, -2.f}, Tensor(3.f)}, .out = {Tensor{3.f, -6.f}}})
      .sample({.in = {Tensor{INFINITY, NAN}, Tensor(0.f)}, .out = {Tensor{0.f, 0.f}}, .differentiable = false});

  r.define("Square")
      .in("x", numbers)
      .out("y")
      .shape(like<0>)
      .cpu(fusible([](auto x) { return static_cast<decltype(x)>(wrapping(x) * wrapping(x)); }))
      .grad([](const GradCtx& g) { return g.dy() * (conj(g.x()) * 2); })
      .grad_reads({0})
      .doc("x * x, element by element.")
      .sample({.in = {Tensor{1.f, -2.f, 0.5f}}, .out = {Tensor{1.f, 4.f, 0.25f}}})
      .sample({.in = {Tensor{3, -2}}, .out = {Tensor{9, 4}}});

  r.define("SquaredDifference")
      .in("x", floating_or_complex + index_types)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(fusible([](auto x, auto y) {
        using T = decltype(x);
        const T d = static_cast<T>(wrapping(x) - wrapping(y));
        if constexpr (is_complex_element<T>) {
          return d * std::conj(d);
        } else {
          return static_cast<T>(wrapping(d) * wrapping(d));
        }
      }))
      .grad([](const GradCtx& g) {
        // Of complex numbers: d conj(d) follows d and its conjugate.
        const Tensor twice = is_complex(g.x(0).dtype()) ? g.dy() + conj(g.dy()) : g.dy() * 2;
        const Tensor dx = twice * (g.x(0) - g.x(1));
        return binary_gradients(
            g, [&] { return dx; }, [&] { return negative(dx); });
      })
      .commutative()
      .doc("(x - y) * (x - y), element by element; the squared modulus of complex differences.")
      .sample({.in = {Tensor{1.f, -2.f}, Tensor{3.f, 1.f}}, .out = {Tensor{4.f, 9.f}}})
      .sample({.in = {Tensor{{1.f}, {2.f}}, Tensor{3.f, 1.f}}, .out = {Tensor{{4.f, 0.f}, {1.f, 1.f}}}});

  r.define("Neg")
      .in("x", numbers)
      .out("y")
      .shape(like<0>)
      .cpu(fusible([](auto x) {
        if constexpr (std::is_integral_v<decltype(x)>) {
          return static_cast<decltype(x)>(0 - wrapping(x));
        } else {
          return -x;
        }
      }))
      .grad([](const GradCtx& g) { return negative(g.dy()); })
      .grad_reads({})
      .doc("-x, element by element.")
      .sample({.in = {Tensor{1.f, -2.f, 0.f}}, .out = {Tensor{-1.f, 2.f, -0.f}}})
      .sample({.in = {Tensor{{1, -2}}}, .out = {Tensor{{-1, 2}}}});
}

void register_extremes(Registry& r) {
  r.define("Maximum")
      .in("x", real_numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(fusible([](auto x, auto y) {
        if constexpr (std::is_integral_v<decltype(x)>) {
          return x > y ? x : y;
        } else {
          return choose(x > y || x != x, x, y);  // NaN wins
        }
      }))
      .grad([](const GradCtx& g) {
        const Tensor chosen = g.x(0) >= g.x(1);
        return binary_gradients(
            g, [&] { return where(chosen, g.dy(), 0); }, [&] { return where(chosen, 0, g.dy()); });
      })
      .commutative()
      .doc("The larger of x and y, element by element; NaN where either is NaN.")
      .sample({.in = {Tensor{1.f, -2.f, 3.f}, Tensor{2.f, -3.f, 0.f}}, .out = {Tensor{2.f, -2.f, 3.f}}})
      .sample({.in = {Tensor{{1.f}, {-2.f}}, Tensor{0.f, 2.f}}, .out = {Tensor{{1.f, 2.f}, {0.f, 2.f}}}});

  r.define("Minimum")
      .in("x", real_numbers)
      .in("y")
      .out("z")
      .shape(broadcast<0, 1>)
      .cpu(fusible([](auto x, auto y) {
        if constexpr (std::is_integral_v<decltype(x)>) {
          return x < y ? x : y;
        } else {
          return choose(x < y || x != x, x, y);
        }
      }))
      .grad([](const GradCtx& g) {
        const Tensor chosen = g.x(0) <= g.x(1);
        return binary_gradients(
            g, [&] { return where(chosen, g.dy(), 0); }, [&] { return where(chosen, 0, g.dy()); });
      })
      .commutative()
      .doc("The smaller of x and y, element by element; NaN where either is NaN.")
      .sample({.in = {Tensor{1.f, -2.f, 3.f}, Tensor{2.f, -3.f, 0.f}}, .out = {Tensor{1.f, -3.f, 0.f}}})
      .sample({.in = {Tensor{{1.f}, {-2.f}}, Tensor{0.f, 2.f}}, .out = {Tensor{{0.f, 1.f}, {-2.f, -2.f}}}});

  r.define("ClipByValue")
      .in("t", real_numbers)
      .in("clip_value_min")
      .in("clip_value_max")
      .out("output")
      .shape(clip_shape)
      .cpu(fusible([](auto t, auto low, auto high) {
        const auto below = choose(t > high, high, t);  // NaN stays
        return choose(below < low, low, below);
      }))
      .grad([](const GradCtx& g) {
        const Tensor below = g.x(0) < g.x(1);
        const Tensor above = g.x(0) > g.x(2);
        return Gradients{g.want(0, [&] { return where(below | above, 0, g.dy()); }),
                         g.want(1, [&] { return sum_to_shape_of(where(below, g.dy(), 0), g.x(1)); }),
                         g.want(2, [&] { return sum_to_shape_of(where(above, g.dy(), 0), g.x(2)); })};
      })
      .doc("t with values below clip_value_min raised to it and values above clip_value_max lowered to it.")
      .sample({.in = {Tensor{-5.f, 0.5f, 7.f}, Tensor(-1.f), Tensor(1.f)}, .out = {Tensor{-1.f, 0.5f, 1.f}}})
      .sample({.in = {Tensor{{-5.f, 0.5f}, {7.f, 2.f}}, Tensor{{-1.f, 0.f}, {-1.f, 0.f}}, Tensor(3.f)},
               .out = {Tensor{{-1.f, 0.5f}, {3.f, 2.f}}}})
      .sample({.in = {Tensor{{1.f, 2.f}}, Tensor{0.f, 1.f}, Tensor(2.f)}, .error = "have the shape of t"})
      .sample({.in = {Tensor(1.f), Tensor{0.f, 1.f}, Tensor(2.f)}, .error = "have the shape of t"});

  r.define("Abs")
      .in("x", floating + signed_integers)
      .out("y")
      .shape(like<0>)
      .cpu(fusible([](auto x) {
        if constexpr (std::is_integral_v<decltype(x)>) {
          return static_cast<decltype(x)>(x < 0 ? 0 - wrapping(x) : wrapping(x));
        } else {
          using std::abs;
          return abs(x);
        }
      }))
      .grad([](const GradCtx& g) { return g.dy() * sign(g.x()); })
      .doc("|x|, element by element.")
      .sample({.in = {Tensor{1.f, -2.f, 3.f}}, .out = {Tensor{1.f, 2.f, 3.f}}})
      .sample({.in = {Tensor{{-3, 2}}}, .out = {Tensor{{3, 2}}}});

  r.define("Sign")
      .in("x", floating_or_complex + signed_integers)
      .out("y")
      .shape(like<0>)
      .cpu(elementwise([](auto x) {
        using T = decltype(x);
        if constexpr (is_complex_element<T>) {
          const auto modulus = std::abs(x);
          return modulus == 0 ? T(0) : x / modulus;
        } else if constexpr (std::is_integral_v<T>) {
          return static_cast<T>((x > 0) - (x < 0));
        } else {
          return x > 0 ? T(1) : x < 0 ? T(-1) : x;  // zeros and NaN stay
        }
      }))
      .grad([](const GradCtx& g) {
        if (!is_complex(g.x().dtype())) return zeros_like(g.dy());
        // x / |x| follows x and its conjugate.
        const Tensor twice_modulus = cast(abs(g.x()), g.x().dtype()) * 2;
        return divide_no_nan(g.dy() - square(g.y()) * conj(g.dy()), twice_modulus);
      })
      .doc("-1, 0 or 1 as x is negative, zero or positive; x / |x| for complex numbers.")
      .sample({.in = {Tensor{1.5f, -2.f, 0.f}}, .out = {Tensor{1.f, -1.f, 0.f}}, .differentiable = false})
      .sample({.in = {Tensor{{-3, 2, 0}}}, .out = {Tensor{{-1, 1, 0}}}});
}

}  // namespace

void register_arithmetic(Registry& r) {
  register_sums(r);
  register_products(r);
  register_extremes(r);
}

RUNNEL_BINARY_FUNCTION(add, "AddV2")
RUNNEL_BINARY_FUNCTION(subtract, "Sub")
RUNNEL_BINARY_FUNCTION(multiply, "Mul")
RUNNEL_BINARY_FUNCTION(multiply_no_nan, "MulNoNan")
RUNNEL_BINARY_FUNCTION(squared_difference, "SquaredDifference")
RUNNEL_BINARY_FUNCTION(maximum, "Maximum")
RUNNEL_BINARY_FUNCTION(minimum, "Minimum")
RUNNEL_UNARY_FUNCTION(negative, "Neg")
RUNNEL_UNARY_FUNCTION(square, "Square")
RUNNEL_UNARY_FUNCTION(sign, "Sign")

Tensor add_n(const OperandList& inputs) {
  static const Op op("AddN");
  std::vector<Arg> args(inputs.values().begin(), inputs.values().end());
  return op.list(args, {}, &inputs.where());
}

Tensor clip_by_value(const Operand& t, const Operand& clip_value_min, const Operand& clip_value_max) {
  static const Op op("ClipByValue");
  const auto plain = [](const Operand& bound) {
    return bound.is_literal() || !bound.tensor()->defined() ||  // the op says so
           (bound.tensor()->partial_shape().has_rank() && bound.tensor()->partial_shape().rank() == 0);
  };
  if (plain(clip_value_min) && plain(clip_value_max)) return op({t, clip_value_min, clip_value_max});
  // Other bounds may broadcast, but not to more than t.
  return composed(t.where(), [&]() -> Tensor {
    const Tensor x = t.value();
    const Tensor y = maximum(minimum(x, clip_value_max), clip_value_min);
    if (!y.partial_shape().compatible_with(x.partial_shape())) {
      throw invalid_argument("[clip_by_value] the bounds must broadcast to the shape of t, {}, got {} for the result",
                             x.partial_shape().str(), y.partial_shape().str());
    }
    return y;
  });
}

}  // namespace runnel
