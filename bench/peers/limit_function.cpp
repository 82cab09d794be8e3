// Training steps and single inferences of bench/ours/function.cpp, scheduled by hand: oneDNN's primitives and sgemm
// with everything prepared, fused loops for the rest, memory allocated once. Weights are [in, out] and HWIO as ours.
#include <immintrin.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <cmath>
#include <memory>

#include "bench/common.h"

namespace {

using namespace dnnl;
using Call = std::function<void()>;
using tag = memory::format_tag;
using dt = memory::data_type;

engine& cpu() {
  static engine e(engine::kind::cpu, 0);
  return e;
}

struct Floats {
  float* data;
  size_t size;
  explicit Floats(size_t n, unsigned seed = 0)
      : data(static_cast<float*>(std::aligned_alloc(64, (n * 4 + 63) / 64 * 64))), size(n) {
    std::fill(data, data + n, 0.0f);
    if (seed == 0) return;
    bench::fill(data, n, seed);
    for (size_t i = 0; i < n; ++i) data[i] *= 0.1f;
  }
};

struct Weight {
  Floats value, gradient, m, v;
  explicit Weight(size_t n, unsigned seed = 1) : value(n, seed), gradient(n), m(n), v(n) {}
};

void adam(Weight& w, float rate) {
  const __m256 b1 = _mm256_set1_ps(.9f), c1 = _mm256_set1_ps(.1f), b2 = _mm256_set1_ps(.999f),
               c2 = _mm256_set1_ps(.001f), epsilon = _mm256_set1_ps(1e-7f), r = _mm256_set1_ps(rate);
  float *p = w.value.data, *m = w.m.data, *v = w.v.data;
  const float* g = w.gradient.data;
  const long n = static_cast<long>(w.value.size);
#pragma omp parallel for schedule(static) if (n > 200000)
  for (long i = 0; i < n - 7; i += 8) {
    const __m256 gi = _mm256_loadu_ps(g + i);
    const __m256 mi = _mm256_fmadd_ps(b1, _mm256_loadu_ps(m + i), _mm256_mul_ps(c1, gi));
    const __m256 vi = _mm256_fmadd_ps(b2, _mm256_loadu_ps(v + i), _mm256_mul_ps(_mm256_mul_ps(c2, gi), gi));
    _mm256_storeu_ps(m + i, mi);
    _mm256_storeu_ps(v + i, vi);
    const __m256 step = _mm256_div_ps(_mm256_mul_ps(r, mi), _mm256_add_ps(_mm256_sqrt_ps(vi), epsilon));
    _mm256_storeu_ps(p + i, _mm256_sub_ps(_mm256_loadu_ps(p + i), step));
  }
  for (long i = n / 8 * 8; i < n; ++i) {
    m[i] = .9f * m[i] + .1f * g[i];
    v[i] = .999f * v[i] + .001f * g[i] * g[i];
    p[i] -= rate * m[i] / (std::sqrt(v[i]) + 1e-7f);
  }
}

// Row-major C = op(A) op(B) without gaps.
void gemm(char ta, char tb, int m, int n, int k, const Floats& a, const Floats& b, Floats& c) {
  dnnl_sgemm(ta, tb, m, n, k, 1.f, a.data, ta == 'T' ? m : k, b.data, tb == 'T' ? k : n, 0.f, c.data, n);
}

void add_bias(Floats& y, const Floats& bias, bool relu) {
  const size_t n = bias.size;
  for (size_t i = 0; i < y.size; i += n) {
    for (size_t j = 0; j < n; ++j) {
      const float t = y.data[i + j] + bias.data[j];
      y.data[i + j] = relu ? std::max(t, 0.0f) : t;
    }
  }
}

void sum_rows(const Floats& d, Floats& out) {
  std::fill(out.data, out.data + out.size, 0.0f);
  for (size_t i = 0; i < d.size; i += out.size) {
    for (size_t j = 0; j < out.size; ++j) out.data[j] += d.data[i + j];
  }
}

void relu_backward(Floats& d, const Floats& y) {
  for (size_t i = 0; i < d.size; ++i) d.data[i] = y.data[i] > 0 ? d.data[i] : 0;
}

// The gradient of the mean cross entropy with label i % 10 for row i.
void softmax_gradient(const Floats& z, Floats& dz) {
  const size_t rows = z.size / 10;
  for (size_t i = 0; i < rows; ++i) {
    const float* x = z.data + i * 10;
    float* d = dz.data + i * 10;
    const float top = *std::max_element(x, x + 10);
    float sum = 0;
    for (int j = 0; j < 10; ++j) sum += d[j] = std::exp(x[j] - top);
    for (int j = 0; j < 10; ++j) d[j] /= sum * static_cast<float>(rows);
    d[i % 10] -= 1.f / static_cast<float>(rows);
  }
}

// y = x w + b, then relu where asked for; and back.
struct Dense {
  int batch, in, out;
  bool relu;
  Weight w, b;
  Floats y, dy;
  Dense(int batch, int in, int out, bool relu)
      : batch(batch), in(in), out(out), relu(relu), w(size_t(in) * out), b(out), y(size_t(batch) * out), dy(y.size) {}
  void forward(const Floats& x) {
    gemm('N', 'N', batch, out, in, x, w.value, y);
    add_bias(y, b.value, relu);
  }
  void backward(const Floats& x, Floats* dx) {
    if (relu) relu_backward(dy, y);
    gemm('T', 'N', in, out, batch, x, dy, w.gradient);
    sum_rows(dy, b.gradient);
    if (dx) gemm('N', 'T', batch, in, out, dy, w.value, *dx);
  }
  void update() { adam(w, 1e-3f), adam(b, 1e-3f); }
};

// 5x5 SAME convolution with bias and relu, then a 2x2 maximum, all NHWC.
struct ConvPool {
  int batch, side, channels;
  Weight w, b;
  Floats y, pooled, dpooled, dy;
  stream s{cpu()};
  memory src, dst, diff_dst, diff_src, user_w, user_dw, inner_w, back_w, inner_dw, bias, dbias, weights_src,
      weights_dst;
  reorder to_inner, to_back, from_dw, in_src, in_dst;
  bool reorder_src, reorder_dst, has_dx;
  convolution_forward forward_conv;
  convolution_backward_data data_conv;
  convolution_backward_weights weights_conv;

  ConvPool(int batch, int side, int in, int out, Floats& x, Floats* dx, bool any_backward)
      : batch(batch),
        side(side),
        channels(out),
        w(size_t(25) * in * out),
        b(out),
        y(size_t(batch) * side * side * out),
        pooled(y.size / 4),
        dpooled(y.size / 4),
        dy(y.size),
        has_dx(dx != nullptr) {
    const memory::dims xd{batch, in, side, side}, wd{out, in, 5, 5}, yd{batch, out, side, side}, one{1, 1}, pad{2, 2};
    const memory::desc xm(xd, dt::f32, tag::nhwc), ym(yd, dt::f32, tag::nhwc), wm(wd, dt::f32, tag::any),
        bm({out}, dt::f32, tag::x);
    const auto direct = algorithm::convolution_direct;
    const auto kind = prop_kind::forward_training;
    post_ops ops;
    ops.append_eltwise(1, algorithm::eltwise_relu, 0, 0);
    primitive_attr attr;
    attr.set_post_ops(ops);
    const convolution_forward::primitive_desc f({kind, direct, xm, wm, bm, ym, one, pad, pad}, attr, cpu());
    const convolution_forward::primitive_desc hint({kind, direct, xm, wm, bm, ym, one, pad, pad}, cpu());
    const convolution_backward_data::primitive_desc d({direct, xm, wm, ym, one, pad, pad}, cpu(), hint);
    const auto layout = any_backward ? tag::any : tag::nhwc;
    const convolution_backward_weights::primitive_desc g(
        {direct, memory::desc(xd, dt::f32, layout), wm, bm, memory::desc(yd, dt::f32, layout), one, pad, pad}, cpu(),
        hint);
    forward_conv = convolution_forward(f);
    data_conv = convolution_backward_data(d);
    weights_conv = convolution_backward_weights(g);
    src = memory(xm, cpu(), x.data);
    dst = memory(ym, cpu(), y.data);
    diff_dst = memory(ym, cpu(), dy.data);
    if (dx) diff_src = memory(xm, cpu(), dx->data);
    const memory::desc user(wd, dt::f32, tag::hwio);
    user_w = memory(user, cpu(), w.value.data);
    user_dw = memory(user, cpu(), w.gradient.data);
    inner_w = memory(f.weights_desc(), cpu());
    back_w = memory(d.weights_desc(), cpu());
    inner_dw = memory(g.diff_weights_desc(), cpu());
    bias = memory(bm, cpu(), b.value.data);
    dbias = memory(bm, cpu(), b.gradient.data);
    to_inner = reorder(user_w, inner_w);
    to_back = reorder(user_w, back_w);
    from_dw = reorder(inner_dw, user_dw);
    reorder_src = g.src_desc() != xm;
    reorder_dst = g.diff_dst_desc() != ym;
    weights_src = reorder_src ? memory(g.src_desc(), cpu()) : src;
    weights_dst = reorder_dst ? memory(g.diff_dst_desc(), cpu()) : diff_dst;
    if (reorder_src) in_src = reorder(src, weights_src);
    if (reorder_dst) in_dst = reorder(diff_dst, weights_dst);
  }

  void forward() {
    to_inner.execute(s, user_w, inner_w);
    forward_conv.execute(
        s, {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, inner_w}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, dst}});
    const int c = channels;
#pragma omp parallel for schedule(static)
    for (int r = 0; r < batch * side / 2; ++r) {
      for (int q = 0; q < side / 2; ++q) {
        const float *a = y.data + (size_t(r) * 2 * side + 2 * q) * c, *next = a + size_t(side) * c;
        float* out = pooled.data + (size_t(r) * (side / 2) + q) * c;
        for (int k = 0; k < c; ++k) out[k] = std::max(std::max(a[k], a[k + c]), std::max(next[k], next[k + c]));
      }
    }
  }

  // The maximum's gradient goes to its first place, through the relu.
  void backward() {
    const int c = channels;
#pragma omp parallel for schedule(static)
    for (int r = 0; r < batch * side / 2; ++r) {
      for (int q = 0; q < side / 2; ++q) {
        const size_t ia = (size_t(r) * 2 * side + 2 * q) * c, ib = ia + size_t(side) * c;
        const size_t io = (size_t(r) * (side / 2) + q) * c;
        const float *__restrict a = y.data + ia, *__restrict next = y.data + ib, *__restrict top = pooled.data + io,
                    *__restrict g = dpooled.data + io;
        float* __restrict da = dy.data + ia, * __restrict db = dy.data + ib;
        for (int k = 0; k < c; ++k) {
          float left = top[k] > 0 ? g[k] : 0;
          const float t0 = a[k] == top[k] ? left : 0;
          left -= t0;
          const float t1 = a[k + c] == top[k] ? left : 0;
          left -= t1;
          const float t2 = next[k] == top[k] ? left : 0;
          da[k] = t0, da[k + c] = t1, db[k] = t2, db[k + c] = left - t2;
        }
      }
    }
    if (has_dx) {
      to_back.execute(s, user_w, back_w);
      data_conv.execute(s, {{DNNL_ARG_DIFF_DST, diff_dst}, {DNNL_ARG_WEIGHTS, back_w}, {DNNL_ARG_DIFF_SRC, diff_src}});
    }
    if (reorder_src) in_src.execute(s, src, weights_src);
    if (reorder_dst) in_dst.execute(s, diff_dst, weights_dst);
    weights_conv.execute(s, {{DNNL_ARG_SRC, weights_src},
                             {DNNL_ARG_DIFF_DST, weights_dst},
                             {DNNL_ARG_DIFF_WEIGHTS, inner_dw},
                             {DNNL_ARG_DIFF_BIAS, dbias}});
    from_dw.execute(s, inner_dw, user_dw);
  }
  void update() { adam(w, 1e-3f), adam(b, 1e-3f); }
};

struct Mlp {
  Floats x;
  Dense hidden, output;
  explicit Mlp(int batch) : x(size_t(batch) * 784, 9), hidden(batch, 784, 100, true), output(batch, 100, 10, false) {}
  void forward() { hidden.forward(x), output.forward(hidden.y); }
  void step() {
    forward();
    softmax_gradient(output.y, output.dy);
    output.backward(hidden.y, &hidden.dy);
    hidden.backward(x, nullptr);
    hidden.update(), output.update();
  }
};

struct Cnn {
  Floats x;
  ConvPool first, second;
  Dense hidden, output;
  Cnn(int batch, bool any_backward)
      : x(size_t(batch) * 784, 9),
        first(batch, 28, 1, 32, x, nullptr, false),
        second(batch, 14, 32, 64, first.pooled, &first.dpooled, any_backward),
        hidden(batch, 3136, 1024, true),
        output(batch, 1024, 10, false) {}
  void forward() { first.forward(), second.forward(), hidden.forward(second.pooled), output.forward(hidden.y); }
  void step() {
    forward();
    softmax_gradient(output.y, output.dy);
    output.backward(hidden.y, &hidden.dy);
    hidden.backward(second.pooled, &second.dpooled);
    second.backward(), first.backward();
    first.update(), second.update(), hidden.update(), output.update();
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"mlp_step_graph", [](int) -> std::vector<Call> { return {[m = std::make_shared<Mlp>(50)] { m->step(); }}; }},
      {"cnn_step_graph",
       [](int) -> std::vector<Call> {
         return {[m = std::make_shared<Cnn>(50, false)] { m->step(); },
                 [m = std::make_shared<Cnn>(50, true)] { m->step(); }};
       }},
      {"mlp_infer1", [](int) -> std::vector<Call> { return {[m = std::make_shared<Mlp>(1)] { m->forward(); }}; }},
      {"cnn_infer1",
       [](int) -> std::vector<Call> { return {[m = std::make_shared<Cnn>(1, false)] { m->forward(); }}; }},
  };
  return bench::main_of(argc, argv, cases, [](int threads) { omp_set_num_threads(threads); });
}
