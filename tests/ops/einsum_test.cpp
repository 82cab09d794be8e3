// Einsum and tensordot against a loop over all index combinations.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <map>
#include <random>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

Tensor random(const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> v;
  for (int64_t i = 0; i < shape.num_elements(); ++i) v.push_back(uniform(engine));
  return Tensor::of<double>(v, shape);
}

// The definition: for every assignment of indices to labels, the product of the operands' elements is added to the
// output's element. Letters only.
struct Naive {
  Shape shape;
  std::vector<double> values;

  Naive(const std::vector<std::string>& subs, const std::string& out, const std::vector<Tensor>& xs) {
    std::map<char, int64_t> size;
    for (size_t k = 0; k < xs.size(); ++k) {
      for (size_t d = 0; d < subs[k].size(); ++d) size[subs[k][d]] = xs[k].shape()[static_cast<int>(d)];
    }
    Dims dims;
    for (char c : out) dims.push_back(size[c]);
    shape = Shape(dims);
    values.assign(static_cast<size_t>(shape.num_elements()), 0);
    std::map<char, int64_t> at;
    for (auto& [c, n] : size) at[c] = 0;
    auto offset = [&](const std::string& labels) {
      int64_t o = 0;
      for (char c : labels) o = o * size[c] + at[c];
      return static_cast<size_t>(o);
    };
    for (;;) {
      double product = 1;
      for (size_t k = 0; k < xs.size(); ++k) product *= xs[k].data<double>()[offset(subs[k])];
      values[offset(out)] += product;
      auto it = at.begin();
      while (it != at.end() && ++it->second == size[it->first]) {
        it->second = 0;
        ++it;
      }
      if (it == at.end()) break;
    }
  }
};

struct Equation {
  std::string equation;
  std::vector<Shape> shapes;
};

void check(const Equation& c) {
  SCOPED_TRACE(c.equation);
  std::vector<std::string> subs(1);
  const size_t arrow = c.equation.find("->");
  for (char ch : c.equation.substr(0, arrow)) {
    if (ch == ',') {
      subs.emplace_back();
    } else {
      subs.back() += ch;
    }
  }
  std::vector<Tensor> xs;
  for (size_t i = 0; i < c.shapes.size(); ++i) xs.push_back(random(c.shapes[i], static_cast<unsigned>(i) + 1));
  const Naive want(subs, c.equation.substr(arrow + 2), xs);
  const Tensor got = einsum(c.equation, xs);
  ASSERT_EQ(got.shape(), want.shape);
  const auto v = got.to_vector<double>();
  for (size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(v[i], want.values[i], 1e-10) << i;

  // The gradient of sum(y * w) by finite differences, a few elements of each operand.
  GradientTape tape;
  for (const Tensor& x : xs) tape.watch(x);
  const Tensor w = random(got.shape(), 99);
  const Tensor loss = reduce_sum(einsum(c.equation, xs) * w);
  const auto grads = tape.gradient(loss, std::vector<GradSource>(xs.begin(), xs.end()));
  for (size_t k = 0; k < xs.size(); ++k) {
    const Tensor g = grads[k];
    ASSERT_EQ(g.shape(), xs[k].shape());
    for (int64_t i = 0; i < xs[k].num_elements(); i += std::max<int64_t>(1, xs[k].num_elements() / 4)) {
      auto at = [&](double delta) {
        std::vector<Tensor> moved = xs;
        auto values = xs[k].to_vector<double>();
        values[static_cast<size_t>(i)] += delta;
        moved[k] = Tensor::of<double>(values, xs[k].shape());
        return reduce_sum(einsum(c.equation, moved) * w).item<double>();
      };
      EXPECT_NEAR(g.to_vector<double>()[static_cast<size_t>(i)], (at(1e-5) - at(-1e-5)) / 2e-5, 1e-6) << k << ' ' << i;
    }
  }
}

TEST(Einsum, MatchesTheDefinition) {
  for (const Equation& c : std::vector<Equation>{
           {"ij,jk->ik", {{2, 3}, {3, 4}}},
           {"ij,jk->ki", {{2, 3}, {3, 4}}},
           {"ji,jk->ik", {{3, 2}, {3, 4}}},
           {"ij,kj->ik", {{2, 3}, {4, 3}}},
           {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}},
           {"bhqd,bhkd->bhqk", {{2, 2, 3, 4}, {2, 2, 5, 4}}},
           {"bqhd,bkhd->bhqk", {{2, 3, 2, 4}, {2, 5, 2, 4}}},
           {"bhqk,bkhd->bqhd", {{2, 2, 3, 5}, {2, 5, 2, 4}}},
           {"abc,cd->abd", {{2, 3, 4}, {4, 5}}},
           {"abcd,cd->ab", {{2, 3, 4, 2}, {4, 2}}},
           {"abcd,dc->ab", {{2, 3, 4, 2}, {2, 4}}},
           {"i,j->ij", {{3}, {4}}},
           {"i,i->", {{5}, {5}}},
           {"i,i->i", {{5}, {5}}},
           {"bi,bi->b", {{2, 5}, {2, 5}}},
           {"ij->ji", {{2, 3}}},
           {"ij->", {{2, 3}}},
           {"ij->j", {{2, 3}}},
           {"ii->i", {{3, 3}}},
           {"ii->", {{3, 3}}},
           {"iji->ij", {{3, 2, 3}}},
           {"iii->i", {{2, 2, 2}}},
           {"i->ii", {{3}}},
           {"ij->iji", {{2, 3}}},
           {"ii,ij->j", {{3, 3}, {3, 2}}},
           {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
           {"i,i,i->", {{3}, {3}, {3}}},
           {"ij,i,j->", {{2, 3}, {2}, {3}}},
           {"ab,bc,cd,de->ae", {{2, 3}, {3, 4}, {4, 2}, {2, 3}}},
           {"ij,kl->", {{2, 3}, {2, 2}}},
           {"ij,kl->jk", {{2, 3}, {4, 2}}},
           {",i->i", {{}, {3}}},
       }) {
    check(c);
  }
}

TEST(Einsum, EmptyDimensions) {
  EXPECT_EQ(einsum("ij,jk->ik", random({0, 3}, 1), random({3, 4}, 2)).shape(), (Shape{0, 4}));
  const Tensor zero = einsum("ij,jk->ik", random({2, 0}, 1), random({0, 4}, 2));
  EXPECT_EQ(zero.to_vector<double>(), std::vector<double>(8, 0.0));
}

TEST(Einsum, EllipsisBroadcasts) {
  const Tensor a = random({2, 1, 3, 4}, 1);
  const Tensor b = random({5, 4, 2}, 2);
  const Tensor got = einsum("...ij,...jk->...ik", a, b);
  const Tensor want = matmul(a, b);
  ASSERT_EQ(got.shape(), (Shape{2, 5, 3, 2}));
  for (int64_t i = 0; i < got.num_elements(); ++i) EXPECT_NEAR(got.data<double>()[i], want.data<double>()[i], 1e-12);
  EXPECT_EQ(einsum("...ij->...ji", a).shape(), (Shape{2, 1, 4, 3}));
  EXPECT_EQ(einsum("i...->...", a).shape(), (Shape{1, 3, 4}));
  EXPECT_EQ(einsum("i...j,j->i...", a, random({4}, 3)).shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(einsum("...,...->...", a, b(all, newaxis, all, 0)).shape(), (Shape{2, 5, 3, 4}));
}

// What stands under ellipses may broadcast where nothing is known of the sizes.
TEST(Einsum, EllipsesOfUnknownSizes) {
  const auto traced = [](const char* equation, const std::vector<Tensor>& in, std::vector<TensorSpec> specs) {
    return function(
        [=](const Tensor& a, const Tensor& b) {
          return einsum(equation, {a, b});
        },
        {.input_signature = std::move(specs)})(in[0], in[1]);
  };
  const auto same = [](const Tensor& a, const Tensor& b) {
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_LE(reduce_max(abs(a - b)).item<double>(), 1e-12);
  };
  const Tensor column = random({2, 1}, 1), row = random({1, 2}, 2);
  const TensorSpec matrix{{-1, -1}, float64}, any{PartialShape::unknown(), float64};
  same(traced("...,...->...", {column, row}, {matrix, matrix}), column * row);
  same(traced("...,...->...", {column, row}, {any, matrix}), column * row);
  const Tensor a = random({2, 1, 3, 4}, 3), b = random({5, 4, 2}, 4);
  const TensorSpec four{{-1, -1, -1, -1}, float64}, three{{-1, 4, 2}, float64};
  same(traced("...ij,...jk->...ik", {a, b}, {four, three}), matmul(a, b));
}

TEST(Einsum, DiagonalsOfUnknownSizes) {
  const Tensor x = random({3, 3}, 1);
  const auto traced = [&](const char* equation, const Tensor& in, const PartialShape& shape) {
    return function([=](const Tensor& t) { return einsum(equation, t); }, {.input_signature = {{shape, float64}}})(in);
  };
  const Tensor diagonal = einsum("ii->i", x);
  EXPECT_EQ(diagonal.to_vector<double>(), linalg::diag_part(x).to_vector<double>());
  EXPECT_EQ(traced("ii->i", x, {-1, -1}).to_vector<double>(), diagonal.to_vector<double>());
  EXPECT_EQ(traced("i->ii", diagonal, {-1}).to_vector<double>(), linalg::diag(diagonal).to_vector<double>());
}

TEST(Einsum, ImpliedOutputIsAlphabetical) {
  const Tensor a = random({2, 3}, 1);
  EXPECT_EQ(einsum("ba", a).shape(), (Shape{3, 2}));
  EXPECT_EQ(einsum("ij,jk", a, random({3, 4}, 2)).shape(), (Shape{2, 4}));
  EXPECT_EQ(einsum("ii", random({3, 3}, 2)).shape(), Shape{});
  EXPECT_EQ(einsum(" i j , j k -> k i ", a, random({3, 4}, 2)).shape(), (Shape{4, 2}));
}

TEST(Einsum, OtherDtypes) {
  const Tensor i = einsum("ij,jk->ik", Tensor{{1, 2}, {3, 4}}, Tensor{{1, 0}, {0, 2}});
  EXPECT_EQ(i.to_vector<int32_t>(), (std::vector<int32_t>{1, 4, 3, 8}));
  using C = std::complex<float>;
  const Tensor c = einsum("ij,kj->ik", Tensor{{C(0, 1), C(2, 0)}}, Tensor{{C(0, 1), C(1, 1)}});
  EXPECT_EQ(c.item<C>(), C(1, 2));
  EXPECT_EQ(
      cast(einsum("i,i->", cast(Tensor{1.f, 2.f}, bfloat16), cast(Tensor{3.f, 4.f}, bfloat16)), float32).item<float>(),
      11);
}

TEST(Einsum, Errors) {
  const Tensor a = random({2, 3}, 1);
  const Tensor b = random({4, 5}, 2);
  expect_error([&] { einsum("ij,jk->ik", a, b); }, Code::invalid_argument,
               "label 'j' has size 3 and, in operand 1, size 4");
  expect_error([&] { einsum("ij,jk->ik", a, b); }, Code::invalid_argument, "operands [2,3], [4,5]");
  expect_error([&] { einsum("ij,jk->ik", a, b); }, Code::invalid_argument, "einsum_test.cpp");
  expect_error([&] { einsum("ijk->i", a); }, Code::invalid_argument, "'ijk' has 3 labels");
  expect_error([&] { einsum("ij->iz", a); }, Code::invalid_argument, "label 'z' of the output is in no operand");
  expect_error([&] { einsum("ij,jk->ik", a); }, Code::invalid_argument, "names 2 operands, got 1");
  expect_error([&] { einsum("i1->i", a); }, Code::invalid_argument, "'1' is no label");
  expect_error([&] { einsum("......ij->ij", a); }, Code::invalid_argument, "two ellipses");
  expect_error([&] { einsum("...j->j", a); }, Code::invalid_argument, "lacks the operands' ellipsis");
  expect_error([&] { einsum("...i,...i->...", a, random({4, 3}, 1)); }, Code::invalid_argument, "do not broadcast");
  expect_error([&] { einsum("ij,jk->ik", a, cast(random({3, 2}, 1), float32)); }, Code::invalid_argument, "dtype");
}

TEST(Tensordot, MatchesEinsum) {
  const Tensor a = random({2, 3, 4}, 1);
  const Tensor b = random({3, 4, 5}, 2);
  auto expect_same = [](const Tensor& x, const Tensor& y) {
    ASSERT_EQ(x.shape(), y.shape());
    for (int64_t i = 0; i < x.num_elements(); ++i) EXPECT_NEAR(x.data<double>()[i], y.data<double>()[i], 1e-12);
  };
  expect_same(tensordot(a, b, 2), einsum("aij,ijb->ab", a, b));
  expect_same(tensordot(a, b, {2}, {1}), einsum("aij,kjl->aikl", a, b));
  expect_same(tensordot(a, b, {-1, 1}, {1, 0}), einsum("aji,jib->ab", a, b));
  expect_same(tensordot(a, random({2}, 3), 0), einsum("abc,d->abcd", a, random({2}, 3)));
  expect_same(tensordot(a, a, {0, 1, 2}, {0, 1, 2}), einsum("abc,abc->", a, a));
}

TEST(Tensordot, Errors) {
  const Tensor a = random({2, 3}, 1);
  const Tensor b = random({4, 5}, 2);
  expect_error([&] { tensordot(a, b, 1); }, Code::invalid_argument, "differ in size");
  expect_error([&] { tensordot(a, b, 3); }, Code::invalid_argument, "cannot sum over 3 axes");
  expect_error([&] { tensordot(a, b, {0}, {0, 1}); }, Code::invalid_argument, "1 axes of a but 2 of b");
  expect_error([&] { tensordot(a, b, {5}, {0}); }, Code::invalid_argument, "out of range");
  expect_error([&] { tensordot(a, a, {0, 0}, {0, 1}); }, Code::invalid_argument, "named twice");
}

}  // namespace
}  // namespace runnel
