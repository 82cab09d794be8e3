#include "runnel/ops/random_kernels.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/kernels/cpu/random.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/broadcast_grad.h"
#include "runnel/ops/math.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

uint64_t blocks_for(Distribution kind, const Tensor& out) {
  const int64_t n = out.num_elements();
  return kind == Distribution::truncated_normal ? static_cast<uint64_t>(n + 4) * cpu::kBlocksPerRejection
                                                : cpu::plain_blocks(n, static_cast<int>(dtype_size(out.dtype())));
}

void draw_into(Distribution kind, const Philox& gen, const Tensor& out) {
  floating.for_each([&]<class T>() {
    if (dtype_of<T> != out.dtype()) return;
    T* to = out.mutable_data<T>();
    switch (kind) {
      case Distribution::uniform: cpu::fill_uniform<T>(gen, to, out.num_elements()); break;
      case Distribution::normal: cpu::fill_normal<T>(gen, to, out.num_elements()); break;
      case Distribution::truncated_normal: cpu::fill_truncated_normal<T>(gen, to, out.num_elements()); break;
    }
  });
}

template <class T>
void draw_ints(const Philox& gen, const Tensor& lo, const Tensor& hi, const Tensor& out) {
  if (lo.rank() != 0 || hi.rank() != 0) {
    throw invalid_argument("minval and maxval must be scalars, got shapes {} and {}", lo.shape().str(),
                           hi.shape().str());
  }
  const T a = *lo.data<T>();
  const T b = *hi.data<T>();
  if (a >= b && out.num_elements() > 0) throw invalid_argument("needs minval < maxval, got {} and {}", a, b);
  if (a < b) cpu::fill_uniform_int<T>(gen, a, b, out.mutable_data<T>(), out.num_elements());
}
template void draw_ints<int32_t>(const Philox&, const Tensor&, const Tensor&, const Tensor&);
template void draw_ints<int64_t>(const Philox&, const Tensor&, const Tensor&, const Tensor&);

template <class T>
void draw_gamma(const Philox& gen, const Tensor& alpha, const Tensor& out) {
  const int64_t each = alpha.num_elements();
  if (each > 0) cpu::fill_gamma<T>(gen, alpha.data<T>(), each, out.mutable_data<T>(), out.num_elements() / each);
}
template void draw_gamma<Half>(const Philox&, const Tensor&, const Tensor&);
template void draw_gamma<float>(const Philox&, const Tensor&, const Tensor&);
template void draw_gamma<double>(const Philox&, const Tensor&, const Tensor&);

template <class T>
void draw_categories(const Philox& gen, const Tensor& logits, const Tensor& out) {
  const int64_t classes = logits.shape()[1];
  const int64_t samples = out.shape()[1];
  if (classes == 0) throw invalid_argument("there are no classes to draw from");
  parallel_for(out.shape()[0], 16, [&](int64_t begin, int64_t end) {
    std::vector<double> cumulative(static_cast<size_t>(classes));
    for (int64_t row = begin; row < end; ++row) {
      const T* z = logits.data<T>() + row * classes;
      double top = -INFINITY;
      for (int64_t k = 0; k < classes; ++k) {
        if (std::isfinite(static_cast<double>(z[k]))) top = std::max(top, static_cast<double>(z[k]));
      }
      double sum = 0;
      for (int64_t k = 0; k < classes; ++k) {
        const auto v = static_cast<double>(z[k]);
        if (std::isfinite(v)) sum += std::exp(v - top);  // impossible classes (-inf) add nothing
        cumulative[static_cast<size_t>(k)] = sum;
      }
      Philox mine = gen;
      mine.skip(static_cast<uint64_t>(row * samples / 2));
      PhiloxWords words(mine);
      if (row * samples % 2 != 0) words(), words();
      for (int64_t i = 0; i < samples; ++i) {
        const uint32_t w0 = words(), w1 = words();
        const double at = uniform_double(w0, w1) * sum;
        const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), at);
        const int64_t k = std::min<int64_t>(found - cumulative.begin(), classes - 1);
        if (out.dtype() == DType::int32) {
          out.mutable_data<int32_t>()[row * samples + i] = static_cast<int32_t>(k);
        } else {
          out.mutable_data<int64_t>()[row * samples + i] = k;
        }
      }
    }
  });
}
#define RUNNEL_CATEGORIES(T) template void draw_categories<T>(const Philox&, const Tensor&, const Tensor&);
RUNNEL_CATEGORIES(Half)
RUNNEL_CATEGORIES(BFloat16)
RUNNEL_CATEGORIES(float)
RUNNEL_CATEGORIES(double)
RUNNEL_CATEGORIES(int8_t)
RUNNEL_CATEGORIES(int16_t)
RUNNEL_CATEGORIES(int32_t)
RUNNEL_CATEGORIES(int64_t)
RUNNEL_CATEGORIES(uint8_t)
RUNNEL_CATEGORIES(uint16_t)
RUNNEL_CATEGORIES(uint32_t)
RUNNEL_CATEGORIES(uint64_t)
#undef RUNNEL_CATEGORIES

void shuffle_rows(const Philox& gen, const Tensor& in, const Tensor& out) {
  const int64_t rows = in.rank() == 0 ? 1 : in.shape()[0];
  if (in.num_elements() == 0) return;
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  PhiloxWords words(gen);
  for (size_t i = 0; i + 1 < order.size(); ++i) {  // as TensorFlow does it, so that seeds give its order
    std::swap(order[i], order[i + words() % static_cast<uint32_t>(order.size() - i)]);
  }
  const int64_t row_elements = in.num_elements() / rows;
  cpu::with_element(in.dtype(), [&]<class E>() {
    for (int64_t i = 0; i < rows; ++i) {
      cpu::copy_run(in.data<E>() + order[static_cast<size_t>(i)] * row_elements,
                    out.mutable_data<E>() + i * row_elements, row_elements);
    }
  });
}

void drawn_shape(InferContext& c) {
  c.require_rank(0, 1);
  c.output(constant_sizes(c, 0));
}

Tensor gamma_gradient(const Tensor& dy, const Tensor& alpha, const Tensor& draws) {
  static const Op op("RandomGammaGrad");
  if (dy.dtype() == DType::float16) {
    return cast(gamma_gradient(cast(dy, DType::float32), cast(alpha, DType::float32), cast(draws, DType::float32)),
                DType::float16);
  }
  return sum_to_shape_of(dy * op({alpha, draws}), alpha);
}

PartialShape gamma_shape(const InferContext& c, int alpha_input) {
  c.require_rank(0, 1);
  const PartialShape shape = constant_sizes(c, 0);
  const PartialShape& alpha = c.input(alpha_input);
  if (!shape.has_rank() || !alpha.has_rank()) return PartialShape::unknown();
  Dims dims = shape.dims();
  dims.insert(dims.end(), alpha.begin(), alpha.end());
  return PartialShape(dims);
}

void categorical_shape(InferContext& c) {
  c.require_rank(0, 2);
  const auto samples = c.constant_ints(1);
  c.require_rank(1, 0);
  if (samples && (*samples)[0] < 0) throw invalid_argument("num_samples must be >= 0, got {}", (*samples)[0]);
  c.output(PartialShape{c.input(0).has_rank() ? c.input(0)[0] : kUnknownDim, samples ? (*samples)[0] : kUnknownDim});
}

Tensor in_dtype(const Operand& x, DType dtype) { return x.is_literal() ? x.as(dtype) : *x.tensor(); }

Tensor scaled_uniform(const Tensor& u, const Operand& minval, const Operand& maxval) {
  const Tensor lo = in_dtype(minval, u.dtype());
  const Tensor hi = in_dtype(maxval, u.dtype());
  return u * (hi - lo) + lo;
}

Tensor scaled_normal(const Tensor& z, const Operand& mean, const Operand& stddev) {
  return z * in_dtype(stddev, z.dtype()) + in_dtype(mean, z.dtype());
}

std::pair<Tensor, Tensor> gamma_parameters(const Operand& alpha, const Operand& beta) {
  const DType dtype = !alpha.is_literal()  ? alpha.tensor()->dtype()
                      : !beta.is_literal() ? beta.tensor()->dtype()
                                           : DType::float32;
  const Tensor b = in_dtype(beta, dtype);
  return {in_dtype(alpha, dtype) + zeros_like(b), b};
}

}  // namespace runnel
