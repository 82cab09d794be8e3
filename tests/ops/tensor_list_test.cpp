// Lists: versions, cost, gradients.
#include "runnel/ops/tensor_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runnel/autodiff/tape.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using ::testing::ElementsAre;

const Tensor any_shape(-1);
const Tensor scalars = Tensor::empty(DType::int32, {0});

Tensor reserve(int64_t n, const Tensor& element_shape = scalars) {
  return list_ops::reserve(element_shape, static_cast<int32_t>(n), DType::float32);
}
std::vector<float> floats(const Tensor& list) {
  return list_ops::stack(list, any_shape, DType::float32).to_vector<float>();
}
float item(const Tensor& list, int i) { return list_ops::get_item(list, i, scalars, DType::float32).item<float>(); }

TEST(TensorList, OldVersionsKeepTheirItems) {
  const Tensor a = reserve(3);
  const Tensor b = list_ops::set_item(a, 0, 1.f);
  const Tensor c = list_ops::set_item(b, 0, 2.f);
  const Tensor d = list_ops::push_back(c, 5.f);
  const auto popped = list_ops::pop_back(d, any_shape, DType::float32);
  const Tensor e = list_ops::push_back(popped.list, 6.f);
  const Tensor f = list_ops::resize(e, 1);
  EXPECT_THAT(floats(a), ElementsAre(0, 0, 0));
  EXPECT_THAT(floats(b), ElementsAre(1, 0, 0));
  EXPECT_THAT(floats(c), ElementsAre(2, 0, 0));
  EXPECT_THAT(floats(d), ElementsAre(2, 0, 0, 5));
  EXPECT_THAT(floats(popped.list), ElementsAre(2, 0, 0));
  EXPECT_EQ(popped.item.item<float>(), 5);
  EXPECT_THAT(floats(e), ElementsAre(2, 0, 0, 6));
  EXPECT_THAT(floats(f), ElementsAre(2));
}

TEST(TensorList, AnOlderVersionBranches) {
  const Tensor a = list_ops::set_item(reserve(2), 0, 1.f);
  const Tensor b = list_ops::set_item(a, 1, 2.f);
  const int64_t before = TensorList::num_copies();
  const Tensor c = list_ops::set_item(a, 1, 3.f);
  EXPECT_EQ(TensorList::num_copies(), before + 1);
  EXPECT_THAT(floats(a), ElementsAre(1, 0));
  EXPECT_THAT(floats(b), ElementsAre(1, 2));
  EXPECT_THAT(floats(c), ElementsAre(1, 3));
}

TEST(TensorList, AVersionOutlivesTheOnesAfterIt) {
  const Tensor a = list_ops::set_item(reserve(2), 0, 1.f);
  list_ops::set_item(list_ops::set_item(a, 0, 7.f), 1, 8.f);
  const int64_t before = TensorList::num_copies();
  EXPECT_THAT(floats(a), ElementsAre(1, 0));
  EXPECT_THAT(floats(list_ops::set_item(a, 1, 2.f)), ElementsAre(1, 2));
  EXPECT_EQ(TensorList::num_copies(), before) << "the newest version is gone: nothing to keep";
}

TEST(TensorList, ALoopOfWritesNeverCopies) {
  const int64_t before = TensorList::num_copies();
  Tensor list = reserve(2000);
  const Tensor start = list;
  for (int i = 0; i < 2000; ++i) list = list_ops::set_item(list, i, static_cast<float>(i));
  for (int i = 0; i < 2000; ++i) list = list_ops::set_item(list, i, static_cast<float>(2 * i));
  EXPECT_EQ(item(list, 1999), 3998);
  EXPECT_EQ(item(start, 1999), 0);
  EXPECT_EQ(TensorList::num_copies(), before);
}

TEST(TensorList, NeitherDoesOneUnderATapeNorItsGradient) {
  const int64_t before = TensorList::num_copies();
  const Tensor x(3.f);
  GradientTape tape;
  tape.watch(x);
  Tensor list = reserve(500);
  for (int i = 0; i < 500; ++i) list = list_ops::set_item(list, i, x * static_cast<float>(i));
  Tensor sum(0.f);
  for (int i = 0; i < 500; ++i) sum = sum + list_ops::get_item(list, i, scalars, DType::float32);
  EXPECT_EQ(tape.gradient(sum, x).value().item<float>(), 499 * 500 / 2);
  EXPECT_EQ(TensorList::num_copies(), before);
}

TEST(TensorList, ValuesNobodySeesAreFreed) {
  Tensor big = Tensor::empty(DType::float32, {1000});
  const auto& value = big.impl();
  const int32_t alone = value->ref_count();
  Tensor list = reserve(2, any_shape);
  list = list_ops::set_item(list, 0, big);
  EXPECT_GT(value->ref_count(), alone);
  list = list_ops::set_item(list, 0, 1.f);
  EXPECT_EQ(value->ref_count(), alone) << "overwritten";
  list = list_ops::push_back(list, big);
  list = list_ops::pop_back(list, any_shape, DType::float32).list;
  EXPECT_EQ(value->ref_count(), alone) << "popped";
  const Tensor kept = list;
  for (int i = 0; i < 100; ++i) list = list_ops::set_item(list, 1, big);
  EXPECT_LE(value->ref_count(), alone + 12) << "versions nobody holds, with an older one alive";
}

TEST(TensorList, AListMayHoldListsAlsoAnEarlierOneOfItself) {
  Tensor outer = list_ops::empty(any_shape, DType::variant);
  outer = list_ops::push_back(outer, list_ops::set_item(reserve(1), 0, 4.f));
  outer = list_ops::push_back(outer, outer);
  const Tensor inner = list_ops::get_item(outer, 1, any_shape, DType::variant);
  EXPECT_EQ(list_ops::length(inner).item<int32_t>(), 1);
  EXPECT_EQ(item(list_ops::get_item(inner, 0, any_shape, DType::variant), 0), 4);
}

TEST(TensorList, ManyThreadsWriteOneList) {
  const Tensor start = list_ops::set_item(reserve(4), 0, 1.f);
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Tensor list = start;
      for (int k = 0; k < 300; ++k) list = list_ops::set_item(list, 1 + k % 3, static_cast<float>(1000 * t + k));
      results[static_cast<size_t>(t)] = floats(list);
    });
  }
  for (auto& t : threads) t.join();
  for (int t = 0; t < 4; ++t) {
    const float base = static_cast<float>(1000 * t);
    EXPECT_THAT(results[static_cast<size_t>(t)], ElementsAre(1, base + 297, base + 298, base + 299));
  }
  EXPECT_THAT(floats(start), ElementsAre(1, 0, 0, 0));
}

TEST(TensorList, ZerosLikeAndSums) {
  const Tensor a = list_ops::set_item(list_ops::set_item(reserve(3, any_shape), 0, 1.f), 1, Tensor{1.f, 2.f});
  const Tensor b = list_ops::set_item(list_ops::set_item(reserve(3, any_shape), 1, Tensor{10.f, 20.f}), 2, 5.f);
  const Tensor sum = add_n({a, b, a});
  EXPECT_EQ(item(sum, 0), 2);
  EXPECT_THAT(list_ops::get_item(sum, 1, any_shape, DType::float32).to_vector<float>(), ElementsAre(12, 24));
  EXPECT_EQ(item(sum, 2), 5);
  const Tensor zero = zeros_like(a);
  EXPECT_EQ(item(zero, 0), 0);
  EXPECT_THAT(list_ops::get_item(zero, 1, any_shape, DType::float32).to_vector<float>(), ElementsAre(0, 0));
  test::expect_error(
      [&] {
        add_n({a, reserve(2)});
      },
      Code::invalid_argument, "lists of one length and dtype can be added");
}

// d/dx of f by the tape against differences.
void expect_gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x);
  const Tensor dx = tape.gradient(y, x);
  const double h = 1e-6;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    auto moved = [&](double by) {
      std::vector<double> values = x.to_vector<double>();
      values[static_cast<size_t>(i)] += by;
      double sum = 0;
      for (double v : f(Tensor::of<double>(values, x.shape())).to_vector<double>()) sum += v;
      return sum;
    };
    EXPECT_NEAR(dx.to_vector<double>()[static_cast<size_t>(i)], (moved(h) - moved(-h)) / (2 * h), 1e-6)
        << "element " << i;
  }
}

Tensor list_of_rows(const Tensor& x) { return list_ops::from_tensor(x, any_shape); }

TEST(TensorListGradient, OfEveryOp) {
  const Tensor x = Tensor::of<double>({0.3, -1.1, 2.0, 0.7, 1.3, -0.4}, {3, 2});
  const Tensor row{2};
  const DType f64 = DType::float64;
  auto get = [&](const Tensor& list, int i) { return list_ops::get_item(list, i, row, f64); };
  expect_gradient([&](const Tensor& x) { return square(list_ops::stack(list_of_rows(x), row, f64)); }, x);
  expect_gradient(  // reads that repeat
      [&](const Tensor& x) {
        const Tensor list = list_of_rows(x);
        return get(list, 1) * get(list, 1) * get(list, 0);
      },
      x);
  expect_gradient(  // a write over an item that was read before
      [&](const Tensor& x) {
        const Tensor list = list_of_rows(x);
        const Tensor first = get(list, 0);
        const Tensor after = list_ops::set_item(list, 0, first * get(list, 2));
        return list_ops::stack(list_ops::set_item(after, 2, get(after, 0) * 3.0), row, f64) * get(after, 0);
      },
      x);
  expect_gradient(
      [&](const Tensor& x) {
        const Tensor list = list_ops::push_back(list_of_rows(x), get(list_of_rows(x), 1) * 2.0);
        const auto popped = list_ops::pop_back(list, row, f64);
        return popped.item * get(popped.list, 0);
      },
      x);
  expect_gradient(
      [&](const Tensor& x) {
        return square(list_ops::gather(list_of_rows(x), Tensor{2, 0, 2}, row, f64));
      },
      x);
  expect_gradient(
      [&](const Tensor& x) {
        const Tensor list = list_ops::scatter(square(x), Tensor{3, 0, 1}, any_shape, 5);
        return list_ops::stack(list, row, f64) * 2.0 + get(list, 3);
      },
      x);
  expect_gradient(
      [&](const Tensor& x) {
        const Tensor list = list_ops::scatter_into(list_of_rows(x), square(x(slice(0, 2))), Tensor{4, 1});
        return square(list_ops::stack(list, row, f64));
      },
      x);
  expect_gradient(
      [&](const Tensor& x) {
        const Tensor list = list_ops::split(square(x), any_shape, Tensor::of<int64_t>({1, 2}));
        return square(list_ops::concat(list, any_shape, Tensor::empty(DType::int64, {0}), f64).tensor);
      },
      x);
  expect_gradient(
      [&](const Tensor& x) { return square(get(list_ops::resize(list_ops::resize(list_of_rows(x), 2), 6), 1)); }, x);
  expect_gradient(
      [&](const Tensor& x) {
        return square(list_ops::stack(list_ops::set_item(list_of_rows(x), 4, x[0] * x[1], true), row, f64));
      },
      x);
}

TEST(TensorListGradient, OfSecondOrder) {
  const Tensor x = Tensor::of<double>({0.5, 2.0}, {2});
  GradientTape outer;
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  Tensor list = list_ops::reserve(scalars, 2, DType::float64);
  list = list_ops::set_item(list, 0, x[0] * x[1]);
  list = list_ops::set_item(list, 1, list_ops::get_item(list, 0, scalars, DType::float64) * x[0]);
  const Tensor y = reduce_sum(list_ops::stack(list, scalars, DType::float64));  // ab + a^2 b
  const Tensor first = inner.gradient(y, x);
  const Tensor second = outer.gradient(first, x);  // the sums of the columns of the Hessian
  EXPECT_THAT(first.to_vector<double>(), ElementsAre(2 + 2 * .5 * 2, .5 + .25));
  EXPECT_THAT(second.to_vector<double>(), ElementsAre(2 * 2 + 1 + 2 * .5, 1 + 2 * .5));
}

}  // namespace
}  // namespace runnel
