#include "runnel/tensor/nest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runnel/ops/composite.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

std::vector<int> values(const std::vector<Tensor>& leaves) {
  std::vector<int> all;
  for (const Tensor& t : leaves) all.push_back(t.item<int32_t>());
  return all;
}

Nest example() {
  return std::tuple{Tensor(1),
                    std::map<std::string, Nest>{{"b", Tensor(2)}, {"a", std::vector<Tensor>{Tensor(3), Tensor(4)}}}};
}

TEST(Nest, FlattensInOrderWithSortedKeys) {
  EXPECT_EQ(values(nest::flatten(example())), (std::vector<int>{1, 3, 4, 2}));
  EXPECT_EQ(nest::paths(example()), (std::vector<std::string>{"[0]", "[1]['a'][0]", "[1]['a'][1]", "[1]['b']"}));
  EXPECT_EQ(values(nest::flatten(Nest(Tensor(7)))), (std::vector<int>{7}));
  EXPECT_TRUE(nest::flatten(Nest()).empty());
}

TEST(Nest, PacksAgain) {
  const Nest packed = nest::pack(example(), std::vector<Tensor>{Tensor(10), Tensor(30), Tensor(40), Tensor(20)});
  nest::assert_same_structure(packed, example());
  EXPECT_EQ(packed[0].leaf().item<int32_t>(), 10);
  EXPECT_EQ(packed[1]["a"][1].leaf().item<int32_t>(), 40);
  EXPECT_EQ(packed[1]["b"].leaf().item<int32_t>(), 20);
  expect_error([] { nest::pack(example(), std::vector<Tensor>{Tensor(1)}); }, Code::invalid_argument,
               "the structure has 4 leaves, got 1");
}

TEST(Nest, MapsOneOrSeveralAndOtherLeafTypes) {
  const NestOf<int> numbers = nest::map_structure([](const Tensor& t) { return int{t.item<int32_t>()}; }, example());
  EXPECT_EQ(nest::flatten(numbers), (std::vector<int>{1, 3, 4, 2}));
  const NestOf<int> sums = nest::map_structure([](int a, int b) { return a + b; }, numbers, numbers);
  EXPECT_EQ(nest::flatten(sums), (std::vector<int>{2, 6, 8, 4}));
}

TEST(Nest, NamesThePathThatDiffers) {
  const Nest a = std::tuple{Tensor(1), std::map<std::string, Nest>{{"x", std::vector<Tensor>{Tensor(1)}}}};
  const Nest b = std::tuple{Tensor(1), std::map<std::string, Nest>{{"x", std::vector<Tensor>{Tensor(1), Tensor(2)}}}};
  expect_error([&] { nest::assert_same_structure(a, b); }, Code::invalid_argument,
               "structures differ at [1]['x']: a list of 1 and a list of 2");
  expect_error([&] { nest::assert_same_structure(a, Nest(Tensor(1))); }, Code::invalid_argument,
               "structures differ at the top: a tuple of 2 and a leaf");
  const Nest c = std::map<std::string, Tensor>{{"k", Tensor(1)}};
  const Nest d = std::map<std::string, Tensor>{{"l", Tensor(1)}};
  expect_error([&] { nest::map_structure([](const Tensor& x, const Tensor&) { return x; }, c, d); },
               Code::invalid_argument, "a map of ['k'] and a map of ['l']");
  expect_error([&] { c["z"]; }, Code::not_found, "no entry 'z': there are ['k']");
  expect_error([&] { a[2]; }, Code::out_of_range, "item 2 asked of a tuple of 2");
  expect_error([&] { a.leaf(); }, Code::invalid_argument, "a leaf asked of a tuple of 2");
}

TEST(Nest, ConvertsToCppTypes) {
  using Pair = std::tuple<Tensor, std::map<std::string, Tensor>>;
  const Nest n = Pair{Tensor(1), {{"a", Tensor(2)}}};
  const auto [x, m] = n.as<Pair>();
  EXPECT_EQ(x.item<int32_t>(), 1);
  EXPECT_EQ(m.at("a").item<int32_t>(), 2);
  EXPECT_EQ(Nest(std::vector<Tensor>{Tensor(5)}).as<std::vector<Tensor>>()[0].item<int32_t>(), 5);
  EXPECT_EQ((Nest(std::pair{Tensor(5), Tensor(6)}).as<std::pair<Tensor, Tensor>>().second.item<int32_t>()), 6);
  expect_error([&] { n.as<std::tuple<Tensor>>(); }, Code::invalid_argument, "a tuple asked of a tuple of 2");
}

TEST(Nest, CompositesAreStructuresOfTheirComponents) {
  const SparseTensor s{Tensor::of<int64_t>({0}, {1, 1}), Tensor{5}, Tensor::of<int64_t>({2})};
  const IndexedSlices slices{Tensor{1.f}, Tensor{0}, Tensor{3}};
  const RaggedTensor r = RaggedTensor::of<int>({{{1}, {2, 3}}, {}});
  const Nest n = std::tuple{s, slices, r};
  EXPECT_EQ(nest::paths(n), (std::vector<std::string>{"[0].indices", "[0].values", "[0].dense_shape", "[1].values",
                                                      "[1].indices", "[1].dense_shape", "[2].values.values",
                                                      "[2].values.row_splits", "[2].row_splits"}));
  const Nest again = nest::pack(n, nest::flatten(n));
  EXPECT_EQ(again[0].as<SparseTensor>().values.item<int32_t>(), 5);
  EXPECT_EQ(again[1].as<IndexedSlices>().dense_shape.item<int32_t>(), 3);
  EXPECT_EQ(again[2].as<RaggedTensor>().str(), r.str());
  expect_error([&] { nest::assert_same_structure(Nest(s), Nest(slices)); }, Code::invalid_argument,
               "a SparseTensor and IndexedSlices");
}

}  // namespace
}  // namespace runnel
