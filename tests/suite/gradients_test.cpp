// Gradients against central differences in float64, to second order. Complex numbers count as two real ones:
// as in TensorFlow the gradient of a real loss is d/d(real part) + i d/d(imaginary part).
#include <algorithm>
#include <complex>

#include "runnel/autodiff/tape.h"
#include "runnel/base/error.h"
#include "runnel/tensor/type_sets.h"
#include "tests/suite/suite.h"
#include "tests/suite/values.h"

namespace runnel::test {
namespace {

// A float or complex tensor as real numbers.
std::vector<double> reals(const Tensor& t) {
  std::vector<double> out;
  for (const Value& v : values_of(t)) {
    out.push_back(static_cast<double>(v.real()));
    if (is_complex(t.dtype())) out.push_back(static_cast<double>(v.imag()));
  }
  return out;
}

Tensor from_reals(const std::vector<double>& values, DType dtype, const Shape& shape) {
  Tensor t = Tensor::empty(dtype, shape);
  floating_or_complex.for_each([&]<class T>() {
    if (dtype_of<T> != dtype) return;
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      const auto k = static_cast<size_t>(i);
      const Value v = is_complex(dtype) ? Value(values[2 * k], values[2 * k + 1]) : Value(values[k]);
      store<T>(v, t.mutable_data<T>()[i]);
    }
  });
  return t;
}

Tensor nudged(const Tensor& t, size_t at, double by) {
  std::vector<double> values = reals(t);
  values[at] += by;
  return from_reals(values, t.dtype(), t.shape());
}

bool continuous(DType t) { return is_float(t) || is_complex(t); }

// Fixed weights in [-1, 1], none near zero.
std::vector<double> weights(size_t n, unsigned seed) {
  std::vector<double> out;
  for (size_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const double u = static_cast<double>(seed >> 8) / static_cast<double>(1u << 24);
    out.push_back(u < 0.5 ? -0.25 - 1.5 * u : 1.75 - 1.5 * u);
  }
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  long double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<long double>(a[i]) * static_cast<long double>(b[i]);
  return static_cast<double>(sum);
}

// The call as a function of its continuous inputs followed by the gradients of its continuous outputs.
class Problem {
 public:
  Problem(const Case& c, std::vector<Tensor> inputs) : c_(c), inputs_(std::move(inputs)) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!continuous(inputs_[i].dtype()) || input_spec(*c_.op, inputs_, i).host_memory) continue;
      if (std::ranges::count(c_.sample().fixed, static_cast<int>(i)) > 0) continue;
      sources_.push_back(i);
      if (inputs_[i].dtype() == float32 || inputs_[i].dtype() == complex64) single_ = true;
    }
    for (const Tensor& y : call(inputs_)) {
      if (!continuous(y.dtype())) continue;
      const size_t n = reals(y).size();
      const auto w = weights(n, 17u + static_cast<unsigned>(cotangents_.size()));
      cotangents_.push_back(from_reals(w, y.dtype(), y.shape()));
      if (y.dtype() == float32 || y.dtype() == complex64) single_ = true;
    }
  }
  bool empty() const { return sources_.empty() || cotangents_.empty(); }

  void check_first() const {
    const std::vector<Tensor> analytic = gradients(inputs_, cotangents_);
    for (size_t s = 0; s < sources_.size(); ++s) {
      compare(analytic[s],
              numeric(inputs_[sources_[s]],
                      [&](const Tensor& x) {
                        std::vector<Tensor> in = inputs_;
                        in[sources_[s]] = x;
                        return loss(in);
                      }),
              "gradient of " + input_name(s));
    }
  }

  // The weighted sum of the gradients, differentiated by the inputs and by the cotangents.
  void check_second() const {
    std::vector<Tensor> seeds;
    for (size_t s = 0; s < sources_.size(); ++s) {
      const Tensor& x = inputs_[sources_[s]];
      const auto w = weights(reals(x).size(), 101u + static_cast<unsigned>(s));
      seeds.push_back(from_reals(w, x.dtype(), x.shape()));
    }
    std::vector<Tensor> analytic;
    {
      GradientTape outer;
      std::vector<GradSource> all;
      for (size_t s : sources_) all.emplace_back(inputs_[s]);
      for (const Tensor& dy : cotangents_) all.emplace_back(dy);
      for (const GradSource& s : all) outer.watch(s.key());
      const std::vector<Tensor> first = gradients(inputs_, cotangents_);
      for (const Gradient& g : outer.gradient(first, all, seeds)) {
        const size_t i = analytic.size();
        analytic.push_back(g.defined() ? g.value() : zeros(all[i].key()));
      }
    }
    auto weighted = [&](const std::vector<Tensor>& in, const std::vector<Tensor>& dy) {
      const std::vector<Tensor> first = gradients(in, dy);
      double sum = 0;
      for (size_t s = 0; s < first.size(); ++s) sum += dot(reals(first[s]), reals(seeds[s]));
      return sum;
    };
    for (size_t s = 0; s < sources_.size(); ++s) {
      compare(analytic[s],
              numeric(inputs_[sources_[s]],
                      [&](const Tensor& x) {
                        std::vector<Tensor> in = inputs_;
                        in[sources_[s]] = x;
                        return weighted(in, cotangents_);
                      }),
              "second gradient of " + input_name(s));
    }
    for (size_t j = 0; j < cotangents_.size(); ++j) {
      compare(analytic[sources_.size() + j],
              numeric(cotangents_[j],
                      [&](const Tensor& x) {
                        std::vector<Tensor> dy = cotangents_;
                        dy[j] = x;
                        return weighted(inputs_, dy);
                      }),
              "derivative of the gradient by that of output " + std::to_string(j));
    }
  }

 private:
  std::vector<Tensor> call(const std::vector<Tensor>& in) const { return run(*c_.op, in, c_.attrs()); }
  std::string input_name(size_t s) const {
    return input_spec(*c_.op, inputs_, sources_[s]).name + " (input " + std::to_string(sources_[s]) + ")";
  }
  static Tensor zeros(const Tensor& like) {
    return from_reals(std::vector<double>(reals(like).size(), 0.0), like.dtype(), like.shape());
  }
  static std::vector<Tensor> continuous_ones(std::vector<Tensor> all) {
    std::erase_if(all, [](const Tensor& t) { return !continuous(t.dtype()); });
    return all;
  }

  double loss(const std::vector<Tensor>& in) const {
    const std::vector<Tensor> y = continuous_ones(call(in));
    double sum = 0;
    for (size_t j = 0; j < y.size(); ++j) sum += dot(reals(y[j]), reals(cotangents_[j]));
    return sum;
  }

  std::vector<Tensor> gradients(const std::vector<Tensor>& in, const std::vector<Tensor>& dy) const {
    GradientTape tape;
    std::vector<GradSource> sources;
    for (size_t s : sources_) {
      tape.watch(in[s]);
      sources.emplace_back(in[s]);
    }
    const std::vector<Tensor> y = continuous_ones(call(in));
    std::vector<Tensor> result;
    for (const Gradient& g : tape.gradient(y, sources, dy)) {
      const Tensor& x = in[sources_[result.size()]];
      result.push_back(g.defined() ? g.value() : zeros(x));
      if (!(result.back().shape() == x.shape()) || result.back().dtype() != x.dtype()) {
        throw Error(Code::internal, "the gradient is " + describe({result.back()}) + ", its input " + describe({x}));
      }
    }
    return result;
  }

  template <class F>
  std::vector<double> numeric(const Tensor& at, F f) const {
    std::vector<double> out;
    const std::vector<double> values = reals(at);
    for (size_t i = 0; i < values.size(); ++i) {
      const double h = (single_ ? 1e-2 : 1e-5) * std::max(1.0, std::abs(values[i]));
      const double up = f(nudged(at, i, h));
      const double down = f(nudged(at, i, -h));
      out.push_back((up - down) / (2 * h));
    }
    return out;
  }

  void compare(const Tensor& analytic, const std::vector<double>& numeric, const std::string& what) const {
    const std::vector<double> got = reals(analytic);
    ASSERT_EQ(got.size(), numeric.size()) << what;
    double scale = 1;
    for (double v : numeric) scale = std::max(scale, std::abs(v));
    const double tolerance = (single_ ? 5e-3 : 1e-5) * scale;
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::abs(got[i] - numeric[i]) <= tolerance) continue;
      ADD_FAILURE() << what << " for " << describe(inputs_) << ", number " << i << ": " << got[i] << ", by differences "
                    << numeric[i];
      return;
    }
  }

  const Case& c_;
  std::vector<Tensor> inputs_;
  std::vector<size_t> sources_;
  std::vector<Tensor> cotangents_;
  bool single_ = false;  // an input or output is bound to float32
};

// The inputs with every type variable that is floating widened to 64 bits; with `imaginary`, those that may be
// complex made so.
std::vector<Tensor> widened(const Case& c, std::vector<Tensor> in, bool imaginary) {
  const std::vector<Tensor> original = in;
  for (size_t i = 0; i < in.size(); ++i) {
    const ArgSpec& spec = input_spec(*c.op, original, i);
    if (spec.type_var < 0 || !continuous(in[i].dtype())) continue;
    const TypeVar& var = c.op->type_vars[static_cast<size_t>(spec.type_var)];
    if (imaginary && var.allows(complex128)) {
      Tensor wide = cast_values(in[i], complex128).value;
      const auto extra = weights(static_cast<size_t>(wide.num_elements()), 7u + static_cast<unsigned>(i));
      for (int64_t k = 0; k < wide.num_elements(); ++k) {
        wide.mutable_data<std::complex<double>>()[k] += std::complex<double>(0, 0.4 * extra[static_cast<size_t>(k)]);
      }
      in[i] = wide;
    } else {
      const DType wide = is_complex(in[i].dtype()) ? complex128 : float64;
      if (var.allows(wide)) in[i] = cast_values(in[i], wide).value;
    }
  }
  return in;
}

enum class Numbers { real, complex };

// Calls `check` on the sample as a Problem; with complex numbers when real ones were stated and both are allowed.
template <class F>
void with_problem(const Case& c, Numbers numbers, F check) {
  const Sample& s = c.sample();
  if (!s.error.empty() || !s.differentiable || !c.op->grad || c.op->stateful || s.make) return;
  const std::vector<Tensor> inputs = c.inputs();
  if (numbers == Numbers::complex) {
    bool both = false;
    for (size_t v = 0; v < c.op->type_vars.size(); ++v) {
      both =
          both || (c.op->type_vars[v].allows(complex128) && is_float(bound_dtype(*c.op, inputs, static_cast<int>(v))));
    }
    if (!both) return;
  }
  SCOPED_TRACE(c.name());
  try {
    const Problem problem(c, widened(c, inputs, numbers == Numbers::complex));
    if (!problem.empty()) check(problem);
  } catch (const Error& e) {
    // A gradient may say that it is known for real numbers only.
    if (numbers == Numbers::complex && e.code() == Code::unimplemented) return;
    ADD_FAILURE() << e.what();
  }
}

}  // namespace

void check_gradient(const Case& c) {
  with_problem(c, Numbers::real, [](const Problem& p) { p.check_first(); });
}
void check_second_gradient(const Case& c) {
  with_problem(c, Numbers::real, [](const Problem& p) { p.check_second(); });
}
void check_complex_gradient(const Case& c) {
  if (c.sample().free_phases) return;
  with_problem(c, Numbers::complex, [](const Problem& p) {
    p.check_first();
    p.check_second();
  });
}

}  // namespace runnel::test
