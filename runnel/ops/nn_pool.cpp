// Pooling over one, two and three spatial dimensions.
#include "runnel/kernels/compute_view.h"
#include "runnel/kernels/cpu/pool.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/nn.h"
#include "runnel/ops/nn_common.h"
#include "runnel/ops/nn_window.h"

namespace runnel {
namespace {

const std::vector<int64_t>& no_dilation(int dims) {
  static const std::vector<int64_t> four(4, 1), five(5, 1);
  return dims == 2 ? four : five;
}

struct MaxPool2DAttrs {
  std::vector<int64_t> ksize = {1, 1, 1, 1};
  std::vector<int64_t> strides = {1, 1, 1, 1};
  std::string padding = "VALID";
  std::vector<int64_t> explicit_paddings;
  std::string data_format = "NHWC";
  static constexpr auto fields_with(const char* formats) {
    using A = MaxPool2DAttrs;
    return field_list(field("ksize", &A::ksize, {.required = true, .minimum = 4}),
                      field("strides", &A::strides, {.required = true, .minimum = 4}),
                      field("padding", &A::padding, {.required = true, .texts = "SAME|VALID|EXPLICIT"}),
                      field("explicit_paddings", &A::explicit_paddings),
                      field("data_format", &A::data_format, {.texts = formats}));
  }
  static constexpr auto fields() { return fields_with("NHWC|NCHW|NCHW_VECT_C"); }
  static constexpr int dims = 2;
  static constexpr const char* forward = "MaxPool";
  static constexpr const char* grad = "MaxPoolGrad";
  static constexpr const char* grad_grad = "MaxPoolGradGrad";
  WindowSpec spec() const { return {dims, strides, no_dilation(dims), padding, &explicit_paddings}; }
};

// What the other pooling ops have: D spatial dimensions, no explicit padding.
template <int D>
struct PlainPoolAttrs {
  std::vector<int64_t> ksize = std::vector<int64_t>(D + 2, 1);
  std::vector<int64_t> strides = std::vector<int64_t>(D + 2, 1);
  std::string padding = "VALID";
  std::string data_format = D == 2 ? "NHWC" : "NDHWC";
  static constexpr auto fields() {
    using A = PlainPoolAttrs;
    return field_list(field("ksize", &A::ksize, {.required = true, .minimum = D + 2}),
                      field("strides", &A::strides, {.required = true, .minimum = D + 2}),
                      field("padding", &A::padding, {.required = true, .texts = "SAME|VALID"}),
                      field("data_format", &A::data_format, {.texts = D == 2 ? "NHWC|NCHW" : "NDHWC|NCDHW"}));
  }
  static constexpr int dims = D;
  static constexpr const char* forward = "MaxPool3D";
  static constexpr const char* grad = "MaxPool3DGrad";
  static constexpr const char* grad_grad = "MaxPool3DGradGrad";
  static constexpr const char* average = D == 2 ? "AvgPool" : "AvgPool3D";
  static constexpr const char* average_grad = D == 2 ? "AvgPoolGrad" : "AvgPool3DGrad";
  WindowSpec spec() const { return {dims, strides, no_dilation(dims), padding}; }
};

// TensorFlow's gradients of MaxPool do not list NCHW_VECT_C.
struct MaxPool2DGradAttrs : MaxPool2DAttrs {
  static constexpr auto fields() { return fields_with("NHWC|NCHW"); }
};
template <class A>
struct PoolGradAttrs {
  using type = A;
};
template <>
struct PoolGradAttrs<MaxPool2DAttrs> {
  using type = MaxPool2DGradAttrs;
};

template <class A>
Windows pool_windows(const A& a, const PartialShape& input) {
  check_data_format(a.data_format, channels_last_format(A::dims));
  const std::vector<int64_t>& k = a.ksize;
  if (k.size() != A::dims + 2) {
    throw invalid_argument("ksize must have {} values, got [{}]", A::dims + 2, comma_separated(k));
  }
  if (k.front() != 1 || k.back() != 1) {
    throw make_error(Code::unimplemented, "pooling over the batch or the channels, ksize [{}]", comma_separated(k));
  }
  if (input.has_rank() && input.rank() != A::dims + 2) {
    throw invalid_argument("the input must have rank {}, got {}", A::dims + 2, input.str());
  }
  Dims in(A::dims, kUnknownDim);
  Dims size(A::dims, kUnknownDim);
  for (size_t d = 0; d < A::dims; ++d) {
    if (input.has_rank()) in[d] = input[static_cast<int>(d) + 1];
    size[d] = k[d + 1];
    if (size[d] < 1) throw invalid_argument("ksize must be positive, got [{}]", comma_separated(k));
  }
  const Windows windows = place_windows(a.spec(), in, size);
  for (size_t d = 0; d < A::dims; ++d) {
    const Window& w = windows[d];
    if (w.before >= w.size || w.after >= w.size) {  // never with SAME and VALID
      throw invalid_argument("a padding of {} and {} leaves windows of {} without any input", w.before, w.after,
                             w.size);
    }
  }
  return windows;
}

template <class A>
PartialShape pool_output(const A& a, const PartialShape& input) {
  const Windows windows = pool_windows(a, input);
  Dims out{input.has_rank() ? input[0] : kUnknownDim};
  for (size_t d = 0; d < A::dims; ++d) out.push_back(windows[d].out);
  out.push_back(last_dim(input));
  return PartialShape(out);
}

template <class A>
cpu::PoolShape pool_shape(const A& a, const Shape& input) {
  const Windows windows = pool_windows(a, input);
  cpu::PoolShape s;
  s.dims = A::dims;
  s.batch = input[0];
  s.channels = last_dim(input);
  for (size_t d = 0; d < A::dims; ++d) {
    s.in[d] = windows[d].in;
    s.kernel[d] = windows[d].size;
    s.stride[d] = windows[d].stride;
    s.pad_before[d] = windows[d].before;
    s.pad_after[d] = windows[d].after;
  }
  return s;
}

// orig_output and the gradient must have the output's shape.
template <class A>
void check_pool_gradient(const A& a, const PartialShape& input, const PartialShape& got, const char* what) {
  const PartialShape expected = pool_output(a, input);
  if (expected.compatible_with(got)) return;
  throw invalid_argument("{} must have the shape of the output, {}, got {}", what, expected.str(), got.str());
}

// y = g at the cell of every window that holds its maximum (the first in row-major order).
template <class T>
void gather_at_maxima(const cpu::PoolShape& s, const T* x, const T* g, T* y) {
  int64_t in_step[3], in_size = s.channels, out_size = 1;
  for (int d = s.dims - 1; d >= 0; --d) {
    in_step[d] = in_size;
    in_size *= s.in[static_cast<size_t>(d)];
    out_size *= s.out(d);
  }
  parallel_for(s.batch * out_size, std::max<int64_t>(1, 4096 / s.channels), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      int64_t first[3] = {}, last[3] = {1, 1, 1}, step[3] = {};
      int64_t rest = o % out_size;
      for (int d = s.dims - 1; d >= 0; --d) {
        const auto i = static_cast<size_t>(d);
        const int64_t start = rest % s.out(d) * s.stride[i] - s.pad_before[i];
        rest /= s.out(d);
        first[d] = std::max<int64_t>(0, start);
        last[d] = std::min(s.in[i], start + s.kernel[i]);
        step[d] = in_step[d];
      }
      const int64_t image = o / out_size * in_size;
      for (int64_t c = 0; c < s.channels; ++c) {
        int64_t best = -1;
        for (int64_t i = first[0]; i < last[0]; ++i) {
          for (int64_t j = first[1]; j < last[1]; ++j) {
            for (int64_t k = first[2]; k < last[2]; ++k) {
              const int64_t at = image + i * step[0] + j * step[1] + k * step[2] + c;
              const bool larger = best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best]);
              if (larger) best = at;
            }
          }
        }
        y[o * s.channels + c] = best < 0 ? T(0) : g[best];
      }
    }
  });
}

template <class A>
Tensor max_pool_grad(const Tensor& input, const Tensor& output, const Tensor& grad, const A& a) {
  using G = typename PoolGradAttrs<A>::type;
  static const Op<G> op(A::grad);
  return op({input, output, grad}, G{a});
}
template <class A>
Tensor max_pool_grad_grad(const Tensor& input, const Tensor& output, const Tensor& grad, const A& a) {
  using G = typename PoolGradAttrs<A>::type;
  static const Op<G> op(A::grad_grad);
  return op({input, output, grad}, G{a});
}
template <class A>
Tensor average_pool(const Operand& value, const A& a) {
  static const Op<A> op(A::average);
  return op({value}, a);
}
template <class A>
Tensor average_pool_grad(const Tensor& orig_input_shape, const Tensor& grad, const A& a) {
  static const Op<A> op(A::average_grad);
  return op({orig_input_shape, grad}, a);
}

template <class A, class T>
auto define_max_pool(Registry& r, T types) {
  return r.define<A>(A::forward)
      .in("input", types, A::dims == 2 ? DType::float32 : DType::invalid)
      .out("output")
      .shape([](InferContext& c, const A& a) { c.output(pool_output<A>(a, c.input(0))); })
      .cpu([]<class E>(KernelContext& c, const A& a) {
        if (c.out().num_elements() == 0) return;
        const ComputeIn<E> x(c.in(0));
        const ComputeOut<E> y(c.out());
        cpu::max_pool_forward(pool_shape<A>(a, c.in(0).shape()), x.data(), y.data());
        y.store();
      })
      .grad([](const GradCtx& g, const A& a) { return max_pool_grad<A>(g.x(), g.y(), g.dy(), a); })
      .doc("The largest element of every window; padding is no element.");
}

template <class A, class T>
auto define_max_pool_grad(Registry& r, T types) {
  return r.define<typename PoolGradAttrs<A>::type>(A::grad)
      .in("orig_input", types, DType::float32)
      .in("orig_output")
      .in("grad")
      .out("output")
      .shape([](InferContext& c, const A& a) {
        check_pool_gradient<A>(a, c.input(0), c.input(1), "orig_output");
        check_pool_gradient<A>(a, c.input(0), c.input(2), "grad");
        c.output(c.input(0));
      })
      .cpu([]<class E>(KernelContext& c, const A& a) {
        if (c.out().num_elements() == 0) return;
        const ComputeIn<E> x(c.in(0));
        const ComputeIn<E> y(c.in(1));
        const ComputeIn<E> dy(c.in(2));
        const ComputeOut<E> dx(c.out());
        cpu::max_pool_backward(pool_shape<A>(a, c.in(0).shape()), x.data(), y.data(), dy.data(), dx.data());
        dx.store();
      })
      .grad([](const GradCtx& g, const A& a) {
        return Gradients{g.want(0, [&] { return zeros_like(g.x(0)); }), g.want(1, [&] { return zeros_like(g.x(1)); }),
                         g.want(2, [&] { return max_pool_grad_grad<A>(g.x(0), g.x(1), g.dy(), a); })};
      })
      .doc("The gradient of max pooling: that of an output goes to the first cell that holds the maximum.");
}

template <class A, class T>
auto define_max_pool_grad_grad(Registry& r, T types) {
  return r.define<typename PoolGradAttrs<A>::type>(A::grad_grad)
      .in("orig_input", types)
      .in("orig_output")
      .in("grad")
      .out("output")
      .shape([](InferContext& c, const A& a) {
        check_pool_gradient<A>(a, c.input(0), c.input(1), "orig_output");
        if (!c.input(0).compatible_with(c.input(2))) {
          throw invalid_argument("grad must have the shape of the input, {}, got {}", c.input(0).str(),
                                 c.input(2).str());
        }
        c.output(pool_output<A>(a, c.input(0)));
      })
      .cpu([]<class E>(KernelContext& c, const A& a) {
        if (c.out().num_elements() == 0) return;
        const ComputeIn<E> x(c.in(0));
        const ComputeIn<E> g(c.in(2));
        const ComputeOut<E> y(c.out());
        gather_at_maxima(pool_shape<A>(a, c.in(0).shape()), x.data(), g.data(), y.data());
        y.store();
      })
      .grad([](const GradCtx& g, const A& a) {
        return Gradients{g.want(0, [&] { return zeros_like(g.x(0)); }), g.want(1, [&] { return zeros_like(g.x(1)); }),
                         g.want(2, [&] { return max_pool_grad<A>(g.x(0), g.x(1), g.dy(), a); })};
      })
      .doc("The gradient of the gradient of max pooling: grad at the maximum of every window.");
}

template <class A>
auto define_avg_pool(Registry& r) {
  return r.define<A>(A::average)
      .in(A::dims == 2 ? "value" : "input", floating)
      .out("output")
      .shape([](InferContext& c, const A& a) { c.output(pool_output<A>(a, c.input(0))); })
      .cpu([]<class E>(KernelContext& c, const A& a) {
        if (c.out().num_elements() == 0) return;
        const ComputeIn<E> x(c.in(0));
        const ComputeOut<E> y(c.out());
        cpu::avg_pool_forward(pool_shape<A>(a, c.in(0).shape()), x.data(), y.data());
        y.store();
      })
      .grad([](const GradCtx& g, const A& a) { return average_pool_grad<A>(shape_vector(g.x()), g.dy(), a); })
      .grad_reads({})
      .doc("The mean of every window; padding does not count.");
}

template <class A>
auto define_avg_pool_grad(Registry& r) {
  return r.define<A>(A::average_grad)
      .type("T", floating)
      .in_host("orig_input_shape", DType::int32)
      .in("grad", "T")
      .out("output")
      .shape([](InferContext& c, const A& a) {
        const PartialShape input = c.constant_shape(0);
        check_pool_gradient<A>(a, input, c.input(1), "grad");
        c.output(input.has_rank() ? input : PartialShape::unknown_dims(A::dims + 2));
      })
      .cpu([]<class E>(KernelContext& c, const A& a) {
        if (c.out().num_elements() == 0) return;
        const ComputeIn<E> dy(c.in(1));
        const ComputeOut<E> dx(c.out());
        cpu::avg_pool_backward(pool_shape<A>(a, c.out().shape()), dy.data(), dx.data());
        dx.store();
      })
      .grad([](const GradCtx& g, const A& a) {
        return Gradients{{}, average_pool<A>(g.dy(), a)};
      })
      .doc("The gradient of average pooling.");
}

// A tensor of float32 values in a shape of more dimensions than literals have.
Tensor pool_values(std::initializer_list<float> values, const Shape& shape) {
  return Tensor::of<float>(std::span(values.begin(), values.size()), shape);
}

void register_pool2d(Registry& r) {
  using M = MaxPool2DAttrs;
  using A = PlainPoolAttrs<2>;
  const Tensor x = pool_values({1, 9, 3, 4, 5, 2}, {1, 2, 3, 1});
  const M two{.ksize = {1, 2, 2, 1}};
  const M same{.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}, .padding = "SAME"};
  define_max_pool<M>(r, floating + signed_integers + Types<uint8_t, uint16_t>{})
      .sample({.in = {x}, .out = {pool_values({9, 9}, {1, 1, 2, 1})}}, two)
      .sample({.in = {x}, .out = {pool_values({9, 3}, {1, 1, 2, 1})}}, same)
      .sample({.in = {x}, .out = {pool_values({1, 9, 9, 4, 5, 5}, {1, 2, 3, 1})}},
              {.ksize = {1, 1, 2, 1}, .padding = "EXPLICIT", .explicit_paddings = {0, 0, 0, 0, 1, 0, 0, 0}})
      .sample({.in = {x}, .error = "Length for attr 'ksize' of 2 must be at least minimum 4"}, {.ksize = {2, 2}})
      .sample({.in = {x}, .error = "ksize must have 4 values"}, {.ksize = {1, 2, 2, 1, 1}})
      .sample({.in = {x}, .error = "negative size"}, {.ksize = {1, 5, 1, 1}});
  // In the samples of gradients orig_output stands between the largest and the second largest element, so
  // that small differences change nothing.
  define_max_pool_grad<M>(r, real_numbers)
      .sample({.in = {x, pool_values({8, 8}, {1, 1, 2, 1}), pool_values({1, 2}, {1, 1, 2, 1})},
               .out = {pool_values({0, 3, 0, 0, 0, 0}, {1, 2, 3, 1})}},
              {two})
      .sample(
          {.in = {x, pool_values({9, 3}, {1, 1, 2, 1}), pool_values({1, 2, 3}, {1, 1, 3, 1})}, .error = "[1,1,2,1]"},
          {same});
  define_max_pool_grad_grad<M>(r, real_numbers)
      .sample({.in = {x, pool_values({8, 2.5f}, {1, 1, 2, 1}), pool_values({1, 2, 3, 4, 5, 6}, {1, 2, 3, 1})},
               .out = {pool_values({2, 3}, {1, 1, 2, 1})}},
              {same})
      .sample(
          {.in = {x, pool_values({9, 3}, {1, 1, 2, 1}), pool_values({1, 2, 3}, {1, 1, 3, 1})}, .error = "[1,2,3,1]"},
          {same});

  const A two_mean{.ksize = {1, 2, 2, 1}};
  const A same_mean{.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}, .padding = "SAME"};
  define_avg_pool<A>(r)
      .sample({.in = {x}, .out = {pool_values({4.75f, 4.75f}, {1, 1, 2, 1})}}, two_mean)
      .sample({.in = {x}, .out = {pool_values({4.75f, 2.5f}, {1, 1, 2, 1})}}, same_mean)
      .sample({.in = {x}, .error = "attr 'padding' of \"EXPLICIT\""}, {.padding = "EXPLICIT"});
  define_avg_pool_grad<A>(r)
      .sample({.in = {Tensor{1, 2, 3, 1}, pool_values({4, 2}, {1, 1, 2, 1})},
               .out = {pool_values({1, 1, 1, 1, 1, 1}, {1, 2, 3, 1})}},
              same_mean)
      .sample({.in = {Tensor{1, 2, 3, 1}, pool_values({4, 2, 1}, {1, 1, 3, 1})}, .error = "[1,1,2,1]"}, same_mean);
}

void register_pool3d(Registry& r) {
  using A = PlainPoolAttrs<3>;
  const Tensor x = pool_values({1, 9, 3, 4, 5, 2, 8, 7}, {1, 2, 2, 2, 1});
  const A a{.ksize = {1, 2, 1, 2, 1}};
  define_max_pool<A>(r, floating)
      .sample({.in = {x}, .out = {pool_values({9, 8}, {1, 1, 2, 1, 1})}}, a)
      .sample({.in = {x}}, {.ksize = {1, 2, 2, 2, 1}, .padding = "SAME"});
  define_max_pool_grad<A>(r, floating)
      .sample({.in = {x, pool_values({8.5f, 7.5f}, {1, 1, 2, 1, 1}), pool_values({1, 2}, {1, 1, 2, 1, 1})},
               .out = {pool_values({0, 1, 0, 0, 0, 0, 2, 0}, {1, 2, 2, 2, 1})}},
              a);
  define_max_pool_grad_grad<A>(r, floating)
      .sample({.in = {x, pool_values({8.5f, 7.5f}, {1, 1, 2, 1, 1}), x}, .out = {pool_values({9, 8}, {1, 1, 2, 1, 1})}},
              a);
  define_avg_pool<A>(r)
      .sample({.in = {x}, .out = {pool_values({4.25f, 5.5f}, {1, 1, 2, 1, 1})}}, a)
      .sample({.in = {x}}, {.ksize = {1, 2, 2, 2, 1}, .padding = "SAME"});
  define_avg_pool_grad<A>(r).sample({.in = {Tensor{1, 2, 2, 2, 1}, pool_values({4, 8}, {1, 1, 2, 1, 1})},
                                     .out = {pool_values({1, 1, 2, 2, 1, 1, 2, 2}, {1, 2, 2, 2, 1})}},
                                    a);
}

template <class A>
A pool_attrs(const nn::PoolOptions& o, const char* op) {
  A a;
  a.ksize = full_list(o.ksize, A::dims, op, "ksize");
  a.strides = full_list(o.strides.empty() ? o.ksize : o.strides, A::dims, op, "strides");
  a.padding = o.padding;
  if (!o.data_format.empty()) a.data_format = o.data_format;
  if constexpr (requires { a.explicit_paddings; }) {
    a.explicit_paddings = full_paddings(o.explicit_paddings, A::dims, op);
    if (!o.explicit_paddings.empty() && o.padding == "VALID") a.padding = "EXPLICIT";
  } else if (!o.explicit_paddings.empty()) {
    throw make_error(Code::unimplemented, "[{}] takes no explicit_paddings", op);
  }
  return a;
}

// One spatial dimension as two, the first of size 1.
nn::PoolOptions widened(const nn::PoolOptions& o, const char* op) {
  auto list = [&](const std::vector<int64_t>& v, const char* what) {
    const std::vector<int64_t> full = full_list(v, 1, op, what);
    return std::vector<int64_t>{full[0], 1, full[1], full[2]};
  };
  nn::PoolOptions two = o;
  two.ksize = list(o.ksize, "ksize");
  two.strides = list(o.strides.empty() ? o.ksize : o.strides, "strides");
  if (!o.explicit_paddings.empty()) {
    const std::vector<int64_t> p = full_paddings(o.explicit_paddings, 1, op);
    two.explicit_paddings = {p[0], p[1], 0, 0, p[2], p[3], p[4], p[5]};
  }
  if (!o.data_format.empty() && o.data_format != "NWC") {
    throw make_error(Code::unimplemented, "[{}] data_format \"{}\" is not supported: tensors are NWC", op,
                     o.data_format);
  }
  two.data_format = "NHWC";
  return two;
}

int spatial_dims(const Operand& input, const char* op) {
  const PartialShape s = input.value().partial_shape();
  if (s.has_rank() && s.rank() >= 3 && s.rank() <= 5) return s.rank() - 2;
  throw invalid_argument("[{}] the input must have rank 3, 4 or 5, got {}", op, s.str());
}

}  // namespace

void register_nn_pool(Registry& r) {
  register_pool2d(r);
  register_pool3d(r);
}

namespace nn {

Tensor max_pool2d(const Operand& input, const PoolOptions& options) {
  return composed(input.where(), [&]() -> Tensor {
    static const Op<MaxPool2DAttrs> op("MaxPool");
    return op({input}, pool_attrs<MaxPool2DAttrs>(options, "MaxPool"));
  });
}
Tensor max_pool3d(const Operand& input, const PoolOptions& options) {
  return composed(input.where(), [&]() -> Tensor {
    static const Op<PlainPoolAttrs<3>> op("MaxPool3D");
    return op({input}, pool_attrs<PlainPoolAttrs<3>>(options, "MaxPool3D"));
  });
}
Tensor max_pool1d(const Operand& input, const PoolOptions& options) {
  return composed(input.where(), [&]() -> Tensor {
    const Operand x(expand_dims(input, -3), input.where());
    return squeeze(max_pool2d(x, widened(options, "max_pool1d")), {-3});
  });
}
Tensor avg_pool2d(const Operand& input, const PoolOptions& options) {
  return composed(input.where(),
                  [&] { return average_pool(input, pool_attrs<PlainPoolAttrs<2>>(options, "AvgPool")); });
}
Tensor avg_pool3d(const Operand& input, const PoolOptions& options) {
  return composed(input.where(),
                  [&] { return average_pool(input, pool_attrs<PlainPoolAttrs<3>>(options, "AvgPool3D")); });
}
Tensor avg_pool1d(const Operand& input, const PoolOptions& options) {
  return composed(input.where(), [&]() -> Tensor {
    const Operand x(expand_dims(input, -3), input.where());
    return squeeze(avg_pool2d(x, widened(options, "avg_pool1d")), {-3});
  });
}

Tensor max_pool(const Operand& input, const PoolOptions& options) {
  return composed(input.where(), [&]() -> Tensor {
    switch (spatial_dims(input, "max_pool")) {
      case 1: return max_pool1d(input, options);
      case 2: return max_pool2d(input, options);
      default: return max_pool3d(input, options);
    }
  });
}
Tensor avg_pool(const Operand& input, const PoolOptions& options) {
  return composed(input.where(), [&]() -> Tensor {
    switch (spatial_dims(input, "avg_pool")) {
      case 1: return avg_pool1d(input, options);
      case 2: return avg_pool2d(input, options);
      default: return avg_pool3d(input, options);
    }
  });
}

}  // namespace nn
}  // namespace runnel
