// Errors of values, shapes, structures and objects name the line of the program that made the mistake.
#include "tests/support/caller_lines.h"

#include <memory>

#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::message_of;
using Flat = std::vector<float>;

TEST(TensorCallerLines, Literals) {
  EXPECT_NAMES_THIS_LINE(Tensor{{1, 2}, {3}});
  EXPECT_NAMES_THIS_LINE(Tensor({{1.f, 2.f}, {3.f}}));
  EXPECT_NAMES_THIS_LINE(Tensor{{{1, 2}, {3}}});
  EXPECT_NAMES_THIS_LINE(Tensor{{{{1.0}}, {{1.0}, {2.0}}}});
  EXPECT_NAMES_THIS_LINE(Tensor{{"a"}, {"b", "c"}});
  EXPECT_NAMES_THIS_LINE(Tensor{{true, false}, {true}});
  EXPECT_NAMES_THIS_LINE(square({{1.f, 2.f}, {3.f}}));
  EXPECT_NAMES_THIS_LINE(constant({{1, 2}, {3}}));
  EXPECT_NAMES_THIS_LINE(constant({{1.0, 2.0}, {3.0}}, float64));
  EXPECT_NAMES_THIS_LINE(constant(std::vector<std::vector<int>>{{1, 2}, {3}}));
  const Tensor x{1.f};
  EXPECT_NAMES_THIS_LINE(x + Tensor{{1.f}, {2.f, 3.f}});
  const auto f = [](const Tensor& t) { return t; };
  EXPECT_NAMES_THIS_LINE(f({{1, 2}, {3}}));  // where braces become a parameter
  EXPECT_EQ((Tensor{{1, 2}, {3, 4}}).shape(), (Shape{2, 2}));
}

TEST(TensorCallerLines, ValuesOfContainers) {
  const Flat three{1, 2, 3};
  EXPECT_NAMES_THIS_LINE(Tensor::of(three, {2, 2}));
  EXPECT_NAMES_THIS_LINE(Tensor::of(std::span<const float>(three), Shape{4}));
  EXPECT_NAMES_THIS_LINE(Tensor::of(std::vector<bool>{true}, {2}));
  EXPECT_NAMES_THIS_LINE(Tensor::of(std::vector<std::string>{"a", "b"}, {3}));
  EXPECT_NAMES_THIS_LINE(Tensor::wrap(DType::string, {1}, three.data(), nullptr));
  EXPECT_NAMES_THIS_LINE(Tensor::wrap(float32, {int64_t{1} << 62, 8}, three.data(), nullptr));
  EXPECT_NAMES_THIS_LINE(dtype_from_name("float33"));
}

TEST(TensorCallerLines, WhatATensorIs) {
  const Tensor none, x{{1.f, 2.f}, {3.f, 4.f}};
  EXPECT_NAMES_THIS_LINE(none.dtype());
  EXPECT_NAMES_THIS_LINE(none.shape());
  EXPECT_NAMES_THIS_LINE(Tensor().shape());
  EXPECT_NAMES_THIS_LINE(none.partial_shape());
  EXPECT_NAMES_THIS_LINE(none.rank());
  EXPECT_NAMES_THIS_LINE(none.dim(0));
  EXPECT_NAMES_THIS_LINE(none.num_elements());
  EXPECT_NAMES_THIS_LINE(none.num_bytes());
  EXPECT_NAMES_THIS_LINE(none.known_value());
  EXPECT_NAMES_THIS_LINE(none.device());
  EXPECT_NAMES_THIS_LINE(none.device_name());
  EXPECT_NAMES_THIS_LINE(none.to_host());
  EXPECT_NAMES_THIS_LINE(none.to(Device::cpu()));
  EXPECT_NAMES_THIS_LINE(none.rows(0, 1));
  EXPECT_NAMES_THIS_LINE(none.with_shape({1}));
  EXPECT_NAMES_THIS_LINE(x.rows(1, 5));
  EXPECT_NAMES_THIS_LINE(x.with_shape({3}));
  auto f = function(
      [](const Tensor& y) {
        EXPECT_NAMES_THIS_LINE(y.shape());
        EXPECT_NAMES_THIS_LINE(y.dim(0));
        EXPECT_NAMES_THIS_LINE(y.num_elements());
        EXPECT_NAMES_THIS_LINE(y.with_shape({2}));
        return y;
      },
      {.input_signature = {{{kUnknownDim}, float32}}});
  f(Tensor{1.f});
}

// Once: calls around it add none of theirs.
TEST(TensorCallerLines, OfCodeInsideAnotherCallAreItsOwn) {
  int line = 0;
  const std::string said = message_of([&] {
    cond(
        Tensor(true),
        [&] {
          line = __LINE__ + 1;
          return zeros(Tensor().shape());
        },
        [] { return zeros({1}); });
  });
  EXPECT_NE(said.find("caller_lines_test.cpp:" + std::to_string(line) + ")"), std::string::npos) << said;
  EXPECT_EQ(said.find(" (at "), said.rfind(" (at ")) << said;
}

TEST(TensorCallerLines, Shapes) {
  EXPECT_NAMES_THIS_LINE(Shape{2, -1});
  EXPECT_NAMES_THIS_LINE(Shape(Dims{-2}));
  EXPECT_NAMES_THIS_LINE(Shape(std::vector<int64_t>{-2}));
  EXPECT_NAMES_THIS_LINE(Shape(PartialShape{kUnknownDim}));
  EXPECT_NAMES_THIS_LINE(Shape(PartialShape::unknown()));
  EXPECT_NAMES_THIS_LINE((PartialShape{2}).merged_with({3}));
  EXPECT_NAMES_THIS_LINE(broadcast_shapes({2}, {3}));
  EXPECT_NAMES_THIS_LINE(normalize_axis(5, 2));
}

TEST(TensorCallerLines, Structures) {
  const Nest pair = std::tuple{Tensor(1), Tensor(2)}, map = std::map<std::string, Tensor>{{"a", Tensor(1)}};
  EXPECT_NAMES_THIS_LINE(pair.leaf());
  EXPECT_NAMES_THIS_LINE(pair[2]);
  EXPECT_NAMES_THIS_LINE(pair[-1]);
  EXPECT_NAMES_THIS_LINE(map["b"]);
  EXPECT_NAMES_THIS_LINE(map[std::string("b")]);
  EXPECT_NAMES_THIS_LINE(pair.as<Tensor>());
  EXPECT_NAMES_THIS_LINE(pair.as<std::vector<Tensor>>());
  EXPECT_NAMES_THIS_LINE(pair.as<std::tuple<Tensor, Tensor, Tensor>>());
  EXPECT_NAMES_THIS_LINE((pair.as<std::map<std::string, Tensor>>()));
  EXPECT_NAMES_THIS_LINE(pair.as<SparseTensor>());
  EXPECT_NAMES_THIS_LINE(pair.as<RaggedTensor>());
  EXPECT_NAMES_THIS_LINE(pair.as<TensorArray>());
  EXPECT_NAMES_THIS_LINE(nest::pack(pair, std::vector<Tensor>{Tensor(1)}));
  EXPECT_NAMES_THIS_LINE(nest::assert_same_structure(pair, map));
  EXPECT_EQ(pair[1].leaf().item<int>() + map["a"].leaf().item<int>(), 3);
}

TEST(TensorCallerLines, Composites) {
  const RaggedTensor none, flat = RaggedTensor::of<int>({{1, 2}, {3}}), deep = RaggedTensor::of<int>({{{1}}, {{2}}});
  EXPECT_NAMES_THIS_LINE(none.dtype());
  EXPECT_NAMES_THIS_LINE(none.row_splits());
  EXPECT_NAMES_THIS_LINE(none.shape());
  EXPECT_NAMES_THIS_LINE(none.row_lengths());
  EXPECT_NAMES_THIS_LINE(none.nrows());
  EXPECT_NAMES_THIS_LINE(flat.ragged_values());
  EXPECT_NAMES_THIS_LINE(deep.values());
  EXPECT_NAMES_THIS_LINE(flat[2]);
  EXPECT_NAMES_THIS_LINE(flat[-3]);
  EXPECT_NAMES_THIS_LINE(SparseTensor().dtype());
  EXPECT_NAMES_THIS_LINE(TensorArray().dtype());
  EXPECT_NAMES_THIS_LINE(TensorArray().element_shape());
  EXPECT_NAMES_THIS_LINE(TensorArray().dynamic_size());
  EXPECT_NAMES_THIS_LINE(TensorArray().name());
  EXPECT_NAMES_THIS_LINE(TensorArray::from_components(nullptr, {}));
}

TEST(TensorCallerLines, Objects) {
  Trackable object, part, other;
  TrackableList list;
  TrackableDict dict;
  object.track("part", part);
  EXPECT_NAMES_THIS_LINE(object.track("part", other));
  EXPECT_NAMES_THIS_LINE(object.track("null", std::shared_ptr<Trackable>()));
  EXPECT_NAMES_THIS_LINE(object.track("v", Variable()));
  EXPECT_NAMES_THIS_LINE(object.replace("v", Variable()));
  EXPECT_NAMES_THIS_LINE(list.append(Variable()));
  EXPECT_NAMES_THIS_LINE(list.insert(1, part));
  EXPECT_NAMES_THIS_LINE(list.remove(0));
  EXPECT_NAMES_THIS_LINE(list.remove(static_cast<size_t>(-1)));
  EXPECT_NAMES_THIS_LINE(dict.set("key", Variable()));
}

TEST(TensorCallerLines, Variables) {
  const Variable none;
  EXPECT_NAMES_THIS_LINE(none.name());
  EXPECT_NAMES_THIS_LINE(none.dtype());
  EXPECT_NAMES_THIS_LINE(none.shape());
  EXPECT_NAMES_THIS_LINE(none.trainable());
  EXPECT_NAMES_THIS_LINE(none.slot());
  EXPECT_NAMES_THIS_LINE(Variable::from_handle(Tensor(1)));
}

TEST(TensorCallerLines, Examples) {
  using io::ExampleSpec;
  EXPECT_NAMES_THIS_LINE(ExampleSpec{{"f", io::FixedLenFeature{{}, DType::complex64}}});
  EXPECT_NAMES_THIS_LINE(ExampleSpec({{"f", io::FixedLenFeature{{-1}, float32}}}));
  EXPECT_NAMES_THIS_LINE(ExampleSpec(std::map<std::string, io::FeatureSpec>{{"f", io::VarLenFeature{DType::bool_}}}));
  const Tensor bytes(io::Example().serialize());
  const auto parsed =
      io::parse_single_example(bytes, {{"s", io::VarLenFeature{}}, {"d", io::FixedLenFeature{{}, float32, 1.f}}});
  EXPECT_NAMES_THIS_LINE(parsed["nope"]);
  EXPECT_NAMES_THIS_LINE(parsed["s"]);
  EXPECT_NAMES_THIS_LINE(parsed.sparse("d"));
  EXPECT_NAMES_THIS_LINE(parsed.ragged("d"));
}

}  // namespace
}  // namespace runnel
