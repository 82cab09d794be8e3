// The same bits with one thread and with two, forward and backward, on tensors large enough that every parallel kernel
// cuts its work. (The op suite does the same with every op's samples, and with elementwise ops on large tensors.)
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "runnel/base/parallel.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

using Inputs = std::vector<Tensor>;

struct Call {
  std::string name;
  std::function<Inputs()> inputs;
  std::function<Inputs(const Inputs&)> run;
  bool gradients = true;
};

Tensor values(const Shape& shape, int64_t seed = 1, DType dtype = float32) {
  return random::stateless_uniform(shape, Tensor{seed, int64_t{7}}, -1.0, 1.0, dtype);
}
Tensor integers(const Shape& shape, int limit, int64_t seed = 1, DType dtype = int32) {
  return random::stateless_uniform(shape, Tensor{seed, int64_t{9}}, 0, limit, dtype);
}

// Results of the call and, where asked for, the gradients of each result by every floating input.
Inputs run_all(const Call& call) {
  const Inputs in = call.inputs();
  if (!call.gradients) return call.run(in);
  Inputs watched, results;
  GradientTape tape({.persistent = true});
  for (const Tensor& t : in) {
    if (t.dtype() == float32 || t.dtype() == float64) watched.push_back(t);
  }
  tape.watch(watched);
  const Inputs out = call.run(in);
  results = out;
  for (const Tensor& y : out) {
    if (y.dtype() != float32 && y.dtype() != float64) continue;
    for (const Tensor& x : watched) {
      const Gradient g = tape.gradient(y, x, values(y.shape(), 11, y.dtype()));
      if (g.defined()) results.push_back(g.value());
    }
  }
  return results;
}

void expect_same_bits(const Call& call) {
  SCOPED_TRACE(call.name);
  const int before = num_threads();
  set_num_threads(1);
  const Inputs one = run_all(call);
  set_num_threads(2);
  const Inputs two = run_all(call);
  set_num_threads(before);
  ASSERT_EQ(one.size(), two.size());
  if (call.gradients) {
    EXPECT_GT(one.size(), 1u) << "nothing was differentiated";
  }
  for (size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one[i].shape(), two[i].shape());
    EXPECT_EQ(0, std::memcmp(one[i].impl()->data, two[i].impl()->data, one[i].num_bytes())) << "result " << i;
  }
}

// One floating input of this shape.
Call unary(const std::string& name, const Shape& shape, std::function<Tensor(const Tensor&)> f, bool gradients = true) {
  return {name, [=] { return Inputs{values(shape)}; }, [=](const Inputs& in) { return Inputs{f(in[0])}; }, gradients};
}

Call binary(const std::string& name, const Shape& a, const Shape& b,
            std::function<Tensor(const Tensor&, const Tensor&)> f) {
  return {name,
          [=] {
            return Inputs{values(a, 1), values(b, 2)};
          },
          [=](const Inputs& in) { return Inputs{f(in[0], in[1])}; }};
}

TEST(SameBits, Reductions) {
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}, Axes{0, 2}}) {
    const Shape shape{70, 61, 53};
    expect_same_bits(unary("sum", shape, [=](const Tensor& x) { return reduce_sum(x, axes); }));
    expect_same_bits(unary("mean", shape, [=](const Tensor& x) { return reduce_mean(x, axes); }));
    expect_same_bits(unary("max", shape, [=](const Tensor& x) { return reduce_max(x, axes); }));
    expect_same_bits(unary("min", shape, [=](const Tensor& x) { return reduce_min(x, axes); }));
    expect_same_bits(unary("prod", shape, [=](const Tensor& x) { return reduce_prod(x * 0.01 + 1, axes); }));
    expect_same_bits(unary("logsumexp", shape, [=](const Tensor& x) { return reduce_logsumexp(x, axes); }));
    expect_same_bits(unary("variance", shape, [=](const Tensor& x) { return math::reduce_variance(x, axes); }));
    expect_same_bits(unary("norm", shape, [=](const Tensor& x) { return math::reduce_euclidean_norm(x, axes); }));
    expect_same_bits(unary(
        "any", shape, [=](const Tensor& x) { return reduce_any(x > 2, axes); }, false));
    expect_same_bits(unary(
        "all", shape, [=](const Tensor& x) { return reduce_all(x > -2, axes); }, false));
  }
  expect_same_bits(unary(
      "argmax", {300, 700}, [](const Tensor& x) { return argmax(x, 1); }, false));
  expect_same_bits(unary(
      "argmin", {300, 700}, [](const Tensor& x) { return argmin(x, 0); }, false));
  expect_same_bits(unary("l2_loss", {300, 700}, [](const Tensor& x) { return nn::l2_loss(x); }));
}

TEST(SameBits, Products) {
  struct Sizes {
    int64_t m, n, k;
  };
  for (const auto& [m, n, k] : {Sizes{50, 1024, 700},
                                {50, 10, 1024},
                                {1024, 10, 50},
                                {50, 1024, 10},
                                {1, 300, 2000},
                                {300, 1, 2000},
                                {20, 30, 9000},
                                {260, 250, 240}}) {
    for (DType dtype : {float32, float64}) {
      for (int t = 0; t < 4; ++t) {
        const bool ta = (t & 1) != 0, tb = (t & 2) != 0;
        expect_same_bits(
            {"matmul",
             [=] {
               return Inputs{values(ta ? Shape{k, m} : Shape{m, k}, 1, dtype),
                             values(tb ? Shape{n, k} : Shape{k, n}, 2, dtype)};
             },
             [=](const Inputs& in) { return Inputs{matmul(in[0], in[1], {.transpose_a = ta, .transpose_b = tb})}; }});
      }
    }
  }
  expect_same_bits(
      binary("batched", {40, 30, 50}, {40, 50, 60}, [](const Tensor& a, const Tensor& b) { return matmul(a, b); }));
  expect_same_bits(binary("einsum", {40, 30, 50}, {50, 60}, [](const Tensor& a, const Tensor& b) {
    return einsum("bik,kj->jbi", {a, b});
  }));
}

TEST(SameBits, ConvolutionsAndPools) {
  auto conv = [](const std::string& padding, int64_t stride) {
    return
        [=](const Tensor& x, const Tensor& w) { return nn::conv2d(x, w, {.strides = {stride}, .padding = padding}); };
  };
  expect_same_bits(binary("one channel", {50, 28, 28, 1}, {5, 5, 1, 32}, conv("SAME", 1)));
  expect_same_bits(binary("many channels", {20, 14, 14, 32}, {5, 5, 32, 64}, conv("SAME", 1)));
  expect_same_bits(binary("large image", {3, 130, 128, 3}, {3, 3, 3, 32}, conv("VALID", 2)));
  expect_same_bits(binary("one by one", {4, 60, 60, 16}, {1, 1, 16, 24}, conv("VALID", 1)));
  expect_same_bits(binary("groups", {8, 40, 40, 16}, {3, 3, 4, 32}, conv("SAME", 1)));
  expect_same_bits(binary("dilated", {4, 40, 40, 8}, {3, 3, 8, 16}, [](const Tensor& x, const Tensor& w) {
    return nn::conv2d(x, w, {.padding = "SAME", .dilations = {2}});
  }));
  expect_same_bits(binary("depthwise", {8, 40, 40, 16}, {3, 3, 16, 2}, [](const Tensor& x, const Tensor& w) {
    return nn::depthwise_conv2d(x, w, {.padding = "SAME"});
  }));
  expect_same_bits(binary("3d", {2, 12, 20, 20, 4}, {3, 3, 3, 4, 8},
                          [](const Tensor& x, const Tensor& w) { return nn::conv3d(x, w, {.padding = "SAME"}); }));
  expect_same_bits({"double",
                    [] {
                      return Inputs{values({4, 30, 30, 8}, 1, float64), values({3, 3, 8, 16}, 2, float64)};
                    },
                    [](const Inputs& in) { return Inputs{nn::conv2d(in[0], in[1], {.padding = "SAME"})}; }});
  for (const std::string padding : {"VALID", "SAME"}) {
    const Shape shape{16, 41, 41, 24};
    expect_same_bits(unary("max_pool", shape, [=](const Tensor& x) {
      return nn::max_pool2d(x, {.ksize = {3}, .strides = {2}, .padding = padding});
    }));
    expect_same_bits(unary("avg_pool", shape, [=](const Tensor& x) {
      return nn::avg_pool2d(x, {.ksize = {3}, .strides = {2}, .padding = padding});
    }));
  }
}

TEST(SameBits, Normalisation) {
  expect_same_bits(unary("softmax", {900, 301}, [](const Tensor& x) { return nn::softmax(x); }));
  expect_same_bits(unary("log_softmax", {900, 301}, [](const Tensor& x) { return nn::log_softmax(x); }));
  expect_same_bits(unary("layer", {900, 301}, [](const Tensor& x) { return nn::layer_normalization(x); }));
  expect_same_bits(unary("l2_normalize", {900, 301}, [](const Tensor& x) { return math::l2_normalize(x, {1}); }));
  expect_same_bits({"batch",
                    [] {
                      return Inputs{values({32, 20, 20, 24}), values({24}, 2), values({24}, 3)};
                    },
                    [](const Inputs& in) { return Inputs{nn::fused_batch_norm(in[0], in[1], in[2]).y}; }});
  expect_same_bits(
      binary("bias", {900, 301}, {301}, [](const Tensor& x, const Tensor& b) { return nn::bias_add(x, b); }));
  expect_same_bits(binary("cross entropy", {900, 301}, {900, 301}, [](const Tensor& x, const Tensor& y) {
    return nn::softmax_cross_entropy_with_logits(nn::softmax(y), x);
  }));
  expect_same_bits(
      {"sparse cross entropy",
       [] {
         return Inputs{values({900, 301}), integers({900}, 301)};
       },
       [](const Inputs& in) { return Inputs{nn::sparse_softmax_cross_entropy_with_logits(in[1], in[0])}; }});
}

TEST(SameBits, ArrangingElements) {
  const Shape shape{64, 65, 66};
  expect_same_bits(unary("transpose", shape, [](const Tensor& x) { return transpose(x, {2, 0, 1}); }));
  expect_same_bits(unary("concat", shape, [](const Tensor& x) { return concat({x, x * 2}, 1); }));
  expect_same_bits(unary("stack", shape, [](const Tensor& x) { return stack({x, x * 2}, 2); }));
  expect_same_bits(unary("split", shape, [](const Tensor& x) { return split(x, 3, 2)[1]; }));
  expect_same_bits(unary("tile", shape, [](const Tensor& x) { return tile(x, {1, 2, 3}); }));
  expect_same_bits(unary("pad", shape, [](const Tensor& x) {
    return pad(x, Tensor{{1, 2}, {0, 3}, {2, 2}}, "REFLECT");
  }));
  expect_same_bits(unary("reverse", shape, [](const Tensor& x) { return reverse(x, {0, 2}); }));
  expect_same_bits(unary("roll", shape, [](const Tensor& x) { return roll(x, {5, 7}, {0, 2}); }));
  expect_same_bits(
      unary("strided_slice", shape, [](const Tensor& x) { return x(slice(1, 60, 2), all, slice(-1, 0, -3)); }));
  expect_same_bits(unary("broadcast_to", {65, 1}, [](const Tensor& x) { return broadcast_to(x, {64, 65, 66}); }));
  expect_same_bits(unary("band_part", {20, 120, 130}, [](const Tensor& x) { return matrix_band_part(x, 3, 5); }));
  expect_same_bits(unary("where", shape, [](const Tensor& x) { return where(x > 0, x, x * x); }));
  expect_same_bits(unary(
      "indices", shape, [](const Tensor& x) { return where(x > 0); }, false));
  expect_same_bits(unary("cumsum", shape, [](const Tensor& x) { return cumsum(x, 1); }));
  expect_same_bits(unary("cumprod", shape, [](const Tensor& x) { return math::cumprod(x * 0.01 + 1, 0); }));
  expect_same_bits(unary("space_to_depth", {16, 60, 60, 8}, [](const Tensor& x) { return space_to_depth(x, 2); }));
}

TEST(SameBits, IndexedElements) {
  auto indexed = [](const std::string& name, const Shape& data, const Shape& ids, int limit,
                    std::function<Tensor(const Tensor&, const Tensor&)> f) {
    expect_same_bits({name,
                      [=] {
                        return Inputs{values(data), integers(ids, limit)};
                      },
                      [=](const Inputs& in) { return Inputs{f(in[0], in[1])}; }});
  };
  indexed("gather", {500, 60}, {6000}, 500, [](const Tensor& x, const Tensor& i) { return gather(x, i); });
  indexed("gather axis", {60, 500}, {6000}, 500, [](const Tensor& x, const Tensor& i) { return gather(x, i, 1); });
  indexed("gather_nd", {50, 50, 60}, {6000, 2}, 50, [](const Tensor& x, const Tensor& i) { return gather_nd(x, i); });
  indexed("scatter_nd", {6000, 60}, {6000, 1}, 500, [](const Tensor& x, const Tensor& i) {
    return scatter_nd(i, x, {500, 60});
  });
  indexed("scatter add", {6000, 60}, {6000, 1}, 500, [](const Tensor& x, const Tensor& i) {
    return tensor_scatter_nd_add(zeros({500, 60}), i, x);
  });
  indexed("unsorted segments", {6000, 60}, {6000}, 500,
          [](const Tensor& x, const Tensor& i) { return math::unsorted_segment_sum(x, i, 500); });
  indexed("unsorted means", {6000, 60}, {6000}, 500,
          [](const Tensor& x, const Tensor& i) { return math::unsorted_segment_mean(x, i, 500); });
  indexed("segments", {6000, 60}, {6000}, 500,
          [](const Tensor& x, const Tensor& i) { return math::segment_sum(x, sort(i)); });
  expect_same_bits(unary(
      "one_hot", {6000}, [](const Tensor& x) { return one_hot(cast(x * 100, int32), 128); }, false));
  expect_same_bits(unary("sort", {300, 900}, [](const Tensor& x) { return sort(x); }));
  expect_same_bits(unary(
      "argsort", {300, 900}, [](const Tensor& x) { return argsort(x); }, false));
  expect_same_bits(unary("top_k", {300, 900}, [](const Tensor& x) { return math::top_k(x, 5).values; }));
}

TEST(SameBits, MatricesOfLinearAlgebra) {
  auto spd = [](const Tensor& x) { return matmul(x, x, {.transpose_b = true}) + eye(24, -1, {}, float64) * 3.0; };
  auto square = [&](const std::string& name, std::function<Tensor(const Tensor&)> f) {
    expect_same_bits({name,
                      [] {
                        return Inputs{values({40, 24, 24}, 1, float64)};
                      },
                      [=](const Inputs& in) { return Inputs{f(in[0])}; }});
  };
  square("cholesky", [=](const Tensor& x) { return linalg::cholesky(spd(x)); });
  square("inverse", [=](const Tensor& x) { return linalg::inv(spd(x)); });
  square("det", [=](const Tensor& x) { return linalg::det(x); });
  square("solve", [=](const Tensor& x) { return linalg::solve(spd(x), x); });
  square("qr", [=](const Tensor& x) { return linalg::qr(x).r; });
  square("svd", [=](const Tensor& x) { return linalg::svd(x).s; });
  square("eigh", [=](const Tensor& x) { return linalg::eigh(spd(x)).e; });
}

TEST(SameBits, RandomNumbersAndUpdates) {
  auto draw = [](const std::string& name, std::function<Tensor()> f) {
    expect_same_bits({name, [] { return Inputs{}; }, [=](const Inputs&) { return Inputs{f()}; }, false});
  };
  const Tensor seed{3, 4};
  draw("uniform", [=] { return random::stateless_uniform({300'001}, seed); });
  draw("normal", [=] { return random::stateless_normal({300'001}, seed); });
  draw("truncated", [=] { return random::stateless_truncated_normal({300'001}, seed); });
  draw("gamma", [=] { return random::stateless_gamma({100'001}, seed, 0.7f); });
  draw("categorical", [=] { return random::stateless_categorical(values({30, 50}), 3000, seed); });
  draw("stateful", [] {
    random::set_seed(5);
    return random::normal({300'001});
  });
  draw("dropout", [] {
    random::set_seed(5);
    return nn::dropout(values({300'001}), 0.4);
  });
  expect_same_bits({"adam",
                    [] {
                      return Inputs{values({300'001}), values({300'001}, 2)};
                    },
                    [](const Inputs& in) {
                      const Variable var(in[0]), m(in[1] * 0.1), v(in[1] * in[1]);
                      training::apply_adam(var, m, v, {}, in[1]);
                      return Inputs{var.value(), m.value(), v.value()};
                    },
                    false});
}

}  // namespace
}  // namespace runnel
