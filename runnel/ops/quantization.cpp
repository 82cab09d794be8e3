// Rounding to the steps of few bits.
#include "runnel/ops/quantization.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"

namespace runnel {
namespace {

struct FakeQuantAttrs {
  int64_t num_bits = 8;
  bool narrow_range = false;
  static constexpr auto fields() {
    return field_list(field("num_bits", &FakeQuantAttrs::num_bits),
                      field("narrow_range", &FakeQuantAttrs::narrow_range));
  }
};
struct FakeQuantArgsAttrs {
  double min = -6;
  double max = 6;
  int64_t num_bits = 8;
  bool narrow_range = false;
  static constexpr auto fields() {
    using A = FakeQuantArgsAttrs;
    return field_list(field("min", &A::min), field("max", &A::max), field("num_bits", &A::num_bits),
                      field("narrow_range", &A::narrow_range));
  }
};

void check_bits(int64_t num_bits) {
  if (num_bits < 2 || num_bits > 16) throw invalid_argument("num_bits must be 2 to 16, got {}", num_bits);
}

// The steps between min and max, moved so that 0 is one of them.
struct QuantizationSteps {
  float low = 0, high = 0, size = 0;

  QuantizationSteps(float min, float max, int64_t num_bits, bool narrow) {
    const float first = narrow ? 1 : 0, last = static_cast<float>((int64_t{1} << num_bits) - 1);
    size = (max - min) / (last - first);
    const float zero = first - min / size;
    const float at = zero < first ? first : zero > last ? last : std::round(zero);
    low = (first - at) * size;
    high = (last - at) * size;
  }
  // Where min is above max, everything is at `low`.
  float nearest(float x, bool divide) const {
    const float above = std::max(std::min(x, high), low) - low;
    return std::floor((divide ? above / size : above * (1 / size)) + 0.5f) * size + low;
  }
};

// x[i] belongs to channel i % channels. Which step is nearest in the middle between two depends on whether the distance
// is divided by the size of a step or multiplied by its reciprocal: TensorFlow's ops do one or the other.
void round_all(const float* x, int64_t n, const float* min, const float* max, int64_t channels, const FakeQuantAttrs& a,
               bool divide, float* y) {
  for (int64_t k = 0; k < channels; ++k) {
    const QuantizationSteps steps(min[k], max[k], a.num_bits, a.narrow_range);
    const bool nothing = min[k] == 0 && max[k] == 0;
    for (int64_t i = k; i < n; i += channels) y[i] = nothing ? 0 : steps.nearest(x[i], divide);
  }
}

void round_all_grad(const float* dy, const float* x, int64_t n, const float* min, const float* max, int64_t channels,
                    const FakeQuantAttrs& a, float* dx, float* dmin, float* dmax) {
  for (int64_t k = 0; k < channels; ++k) {
    const QuantizationSteps steps(min[k], max[k], a.num_bits, a.narrow_range);
    const bool nothing = min[k] == 0 && max[k] == 0;
    double below = 0, above = 0;
    for (int64_t i = k; i < n; i += channels) {
      const bool inside = nothing || (x[i] >= steps.low && x[i] <= steps.high);
      dx[i] = inside ? dy[i] : 0;
      if (!nothing && x[i] < steps.low) below += dy[i];
      if (!nothing && x[i] > steps.high) above += dy[i];
    }
    if (dmin) dmin[k] = static_cast<float>(below);
    if (dmax) dmax[k] = static_cast<float>(above);
  }
}

FakeQuantAttrs plain(const FakeQuantArgsAttrs& a) { return {a.num_bits, a.narrow_range}; }

void check_args(const FakeQuantArgsAttrs& a) {
  check_bits(a.num_bits);
  if (!(a.min < a.max)) throw invalid_argument("min must be below max, got {} and {}", a.min, a.max);
}

// Shapes of min and max, inputs `first` and the next: scalars, or vectors as long as the last dimension of input `x`.
void check_ends(InferContext& c, int x, int first, bool per_channel) {
  c.require_rank(first, per_channel ? 1 : 0);
  c.require_rank(first + 1, per_channel ? 1 : 0);
  if (!per_channel) return;
  c.require_rank_at_least(x, 1);
  for (int i = first; i < first + 2; ++i) {
    if (!c.input(x).has_rank() || !c.input(i).has_rank()) continue;
    const int64_t depth = c.input(x)[c.input(x).rank() - 1], own = c.input(i)[0];
    if (depth >= 0 && own >= 0 && depth != own) throw invalid_argument("{} values for {} channels", own, depth);
  }
}

template <bool per_channel>
void define_vars(Registry& r, const char* name, const char* gradient, const char* doc, const Tensor& min,
                 const Tensor& max) {
  const Tensor x{{-1.f, 0.3f}, {0.6f, 9.f}};
  const Tensor near{{.419999987f}}, between{{per_channel ? .411764681f : .428235263f}};
  const std::vector<Tensor> ends =
      per_channel ? std::vector<Tensor>{Tensor{-1.3f}, Tensor{2.9f}} : std::vector<Tensor>{Tensor(-1.3f), Tensor(2.9f)};
  r.define<FakeQuantAttrs>(name)
      .in("inputs", DType::float32)
      .in("min", DType::float32)
      .in("max", DType::float32)
      .out("outputs", DType::float32)
      .shape([](InferContext& c, const FakeQuantAttrs& a) {
        check_bits(a.num_bits);
        check_ends(c, 0, 1, per_channel);
        c.output(c.input(0));
      })
      .cpu([](KernelContext& c, const FakeQuantAttrs& a) {
        round_all(c.in<float>(0), c.out().num_elements(), c.in<float>(1), c.in<float>(2), c.in(1).num_elements(), a,
                  !per_channel, c.out<float>());
      })
      .grad([](const GradCtx& g, const FakeQuantAttrs& a) {
        static const Op<FakeQuantAttrs> op(per_channel ? "FakeQuantWithMinMaxVarsPerChannelGradient"
                                                       : "FakeQuantWithMinMaxVarsGradient");
        const auto all = op.many({g.dy(), g.x(0), g.x(1), g.x(2)}, a);
        return Gradients{all[0], all[1], all[2]};
      })
      .grad_reads({0, 1, 2})
      .doc(doc)
      // Steps have no slope: the gradient is that of a cut at both ends.
      .sample({.in = {x, min, max}, .fixed = {0, 1, 2}}, {.num_bits = 3})
      .sample({.in = {near, ends[0], ends[1]}, .out = {between}, .fixed = {0, 1, 2}})
      .sample({.in = {near, ends[1], ends[0]}, .out = {Tensor{{2.8988235f}}}, .fixed = {0, 1, 2}})
      .sample({.in = {x, min, max}, .error = "num_bits must be 2 to 16"}, {.num_bits = 17});

  r.define<FakeQuantAttrs>(gradient)
      .in("gradients", DType::float32)
      .in("inputs", DType::float32)
      .in("min", DType::float32)
      .in("max", DType::float32)
      .out("backprops_wrt_input", DType::float32)
      .out("backprop_wrt_min", DType::float32)
      .out("backprop_wrt_max", DType::float32)
      .shape([](InferContext& c, const FakeQuantAttrs& a) {
        check_bits(a.num_bits);
        check_ends(c, 1, 2, per_channel);
        if (!c.input(0).compatible_with(c.input(1))) {
          throw invalid_argument("gradients {} and inputs {} differ in shape", c.input(0).str(), c.input(1).str());
        }
        c.output(0, c.input(1));
        c.output(1, c.input(2));
        c.output(2, c.input(3));
      })
      .cpu([](KernelContext& c, const FakeQuantAttrs& a) {
        round_all_grad(c.in<float>(0), c.in<float>(1), c.in(1).num_elements(), c.in<float>(2), c.in<float>(3),
                       c.in(2).num_elements(), a, c.out<float>(0), c.out<float>(1), c.out<float>(2));
      })
      .not_differentiable()
      .doc("The gradient of the op without Gradient in its name: gradients where inputs lie between min and max.")
      .sample({.in = {Tensor{{1.f, 2.f}, {4.f, 8.f}}, x, min, max}}, {.num_bits = 3});
}

}  // namespace

void register_quantization(Registry& r) {
  const Tensor x{-10.f, -0.5f, 0.25f, 7.f};
  r.define<FakeQuantArgsAttrs>("FakeQuantWithMinMaxArgs")
      .in("inputs", DType::float32)
      .out("outputs", DType::float32)
      .shape([](InferContext& c, const FakeQuantArgsAttrs& a) {
        check_args(a);
        c.output(c.input(0));
      })
      .cpu([](KernelContext& c, const FakeQuantArgsAttrs& a) {
        const auto min = static_cast<float>(a.min), max = static_cast<float>(a.max);
        round_all(c.in<float>(0), c.out().num_elements(), &min, &max, 1, plain(a), false, c.out<float>());
      })
      .grad([](const GradCtx& g, const FakeQuantArgsAttrs& a) {
        static const Op<FakeQuantArgsAttrs> op("FakeQuantWithMinMaxArgsGradient");
        return op({g.dy(), g.x()}, a);
      })
      .grad_reads({0})
      .doc("Numbers rounded to one of 2^num_bits steps between min and max.")
      .sample({.in = {x}, .out = {Tensor{-1.f, -0.5f, 0.5f, 0.5f}}, .fixed = {0}},
              {.min = -1, .max = 0.5, .num_bits = 2})
      .sample({.in = {x}, .error = "min must be below max"}, {.min = 1, .max = 0.5});

  r.define<FakeQuantArgsAttrs>("FakeQuantWithMinMaxArgsGradient")
      .in("gradients", DType::float32)
      .in("inputs", DType::float32)
      .out("backprops", DType::float32)
      .shape([](InferContext& c, const FakeQuantArgsAttrs& a) {
        check_args(a);
        if (!c.input(0).compatible_with(c.input(1))) {
          throw invalid_argument("gradients {} and inputs {} differ in shape", c.input(0).str(), c.input(1).str());
        }
        c.output(c.input(1));
      })
      .cpu([](KernelContext& c, const FakeQuantArgsAttrs& a) {
        const auto min = static_cast<float>(a.min), max = static_cast<float>(a.max);
        round_all_grad(c.in<float>(0), c.in<float>(1), c.out().num_elements(), &min, &max, 1, plain(a), c.out<float>(),
                       nullptr, nullptr);
      })
      .not_differentiable()
      .doc("The gradient of FakeQuantWithMinMaxArgs: gradients where inputs lie between min and max.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f, 4.f}, x}, .out = {Tensor{0.f, 2.f, 3.f, 0.f}}}, {.min = -1, .max = 0.5});

  define_vars<false>(r, "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsGradient",
                     "Numbers rounded to one of 2^num_bits steps between min and max.", Tensor(-0.5f), Tensor(3.f));
  define_vars<true>(r, "FakeQuantWithMinMaxVarsPerChannel", "FakeQuantWithMinMaxVarsPerChannelGradient",
                    "Numbers rounded to one of 2^num_bits steps between the min and max of their channel.",
                    Tensor{-0.5f, 0.f}, Tensor{0.5f, 6.f});
}

namespace quantization {

Tensor fake_quant_with_min_max_args(const Operand& inputs, double min, double max, int64_t num_bits,
                                    bool narrow_range) {
  static const Op<FakeQuantArgsAttrs> op("FakeQuantWithMinMaxArgs");
  return op({inputs}, {.min = min, .max = max, .num_bits = num_bits, .narrow_range = narrow_range});
}
Tensor fake_quant_with_min_max_vars(const Operand& inputs, const Operand& min, const Operand& max, int64_t num_bits,
                                    bool narrow_range) {
  static const Op<FakeQuantAttrs> op("FakeQuantWithMinMaxVars");
  return op({inputs, min, max}, {.num_bits = num_bits, .narrow_range = narrow_range});
}
Tensor fake_quant_with_min_max_vars_per_channel(const Operand& inputs, const Operand& min, const Operand& max,
                                                int64_t num_bits, bool narrow_range) {
  static const Op<FakeQuantAttrs> op("FakeQuantWithMinMaxVarsPerChannel");
  return op({inputs, min, max}, {.num_bits = num_bits, .narrow_range = narrow_range});
}

}  // namespace quantization
}  // namespace runnel
