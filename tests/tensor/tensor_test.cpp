#include "runnel/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <memory>
#include <thread>

#include "runnel/ops/state.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

TEST(TensorTest, LiteralsHaveTensorFlowsDtypes) {
  EXPECT_EQ(Tensor(1).dtype(), int32);
  EXPECT_EQ(Tensor(int64_t{1}).dtype(), int64);
  EXPECT_EQ(Tensor(1.0).dtype(), float32);
  EXPECT_EQ(Tensor(1.f).dtype(), float32);
  EXPECT_EQ(Tensor(true).dtype(), bool_);
  EXPECT_EQ(Tensor(uint8_t{1}).dtype(), uint8);
  EXPECT_EQ(Tensor("text").dtype(), DType::string);
  EXPECT_EQ(Tensor(std::string("text")).dtype(), DType::string);
  EXPECT_EQ(Tensor(Half(1.f)).dtype(), float16);
  EXPECT_EQ(Tensor(BFloat16(1.f)).dtype(), bfloat16);
  EXPECT_EQ(Tensor(std::complex<float>(1, 2)).dtype(), complex64);
  EXPECT_EQ(Tensor(std::complex<double>(1, 2)).dtype(), complex128);
  EXPECT_EQ(Tensor::of<double>(std::vector<double>{1.5}).dtype(), float64);
  EXPECT_EQ(Tensor(2.5).item<float>(), 2.5f);
  EXPECT_EQ(Tensor("text").item<std::string>(), "text");
}

TEST(TensorTest, NestedLists) {
  EXPECT_EQ(Tensor(1.f).shape(), Shape{});
  EXPECT_EQ((Tensor{1.f, 2.f}).shape(), (Shape{2}));
  EXPECT_EQ((Tensor{{1, 2, 3}, {4, 5, 6}}).shape(), (Shape{2, 3}));
  EXPECT_THAT((Tensor{{1, 2, 3}, {4, 5, 6}}).to_vector<int32_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ((Tensor{{{1.f}, {2.f}}, {{3.f}, {4.f}}, {{5.f}, {6.f}}}).shape(), (Shape{3, 2, 1}));
  EXPECT_EQ((Tensor{{{{1.f, 2.f}}}}).shape(), (Shape{1, 1, 1, 2}));
  EXPECT_THAT((Tensor{{true, false}, {false, true}}).to_vector<bool>(), ElementsAre(true, false, false, true));
  EXPECT_THAT((Tensor{{"a", "b"}, {"c", "d"}}).to_vector<std::string>(), ElementsAre("a", "b", "c", "d"));
}

TEST(TensorTest, RaggedLiteralsAreErrors) {
  expect_error([] { Tensor{{1, 2, 3}, {4, 5}}; }, Code::invalid_argument, "rectangular");
  expect_error(
      [] {
        Tensor{{{1.f}, {2.f}}, {{3.f}, {4.f, 5.f}}};
      },
      Code::invalid_argument, "at depth 2 one list has 1 elements, another 2");
}

TEST(TensorTest, OfChecksTheCount) {
  const Tensor t = Tensor::of<float>(std::vector<float>{1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(t.shape(), (Shape{2, 2}));
  expect_error(
      [] {
        Tensor::of<float>(std::vector<float>{1, 2, 3}, {2, 2});
      },
      Code::invalid_argument, "3 values do not fill a tensor of shape [2,2]");
  expect_error([] { Tensor::of<bool>(std::vector<bool>{true}, {2}); }, Code::invalid_argument, "1 values");
}

TEST(TensorTest, WrapSharesForeignMemoryAndKeepsItsOwner) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4});
  std::weak_ptr<std::vector<float>> watch = owner;
  {
    const Tensor t = Tensor::wrap(float32, {2, 2}, owner->data(), owner);
    EXPECT_EQ(t.raw(), owner->data());
    const void* data = owner->data();
    owner.reset();
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(t.rows(1, 2).raw(), static_cast<const float*>(data) + 2);
    EXPECT_THAT(t.to_vector<float>(), ElementsAre(1, 2, 3, 4));
  }
  EXPECT_TRUE(watch.expired());
  expect_error([] { Tensor::wrap(DType::string, {1}, nullptr, nullptr); }, Code::invalid_argument, "string");
}

TEST(TensorTest, ReshapesAndRowsShareTheBuffer) {
  const Tensor t{{1, 2}, {3, 4}, {5, 6}};
  const Tensor flat = t.with_shape({6});
  EXPECT_EQ(flat.raw(), t.raw());
  const Tensor rows = t.rows(1, 3);
  EXPECT_EQ(rows.shape(), (Shape{2, 2}));
  EXPECT_EQ(rows.raw(), t.data<int32_t>() + 2);
  EXPECT_THAT(rows.rows(1, 2).to_vector<int32_t>(), ElementsAre(5, 6));
  EXPECT_EQ(t.rows(3, 3).num_elements(), 0);
  expect_error([&] { t.with_shape({5}); }, Code::invalid_argument, "6 elements does not fit shape [5]");
  for (auto [begin, end] : {std::pair{2, 1}, {-1, 1}, {0, 4}}) {
    expect_error([&] { t.rows(begin, end); }, Code::invalid_argument, "of a tensor of shape [3,2]");
  }
  expect_error([] { Tensor(1).rows(0, 0); }, Code::invalid_argument, "rows");
}

TEST(TensorTest, AHandleThatRefersToNothingSaysSo) {
  const Tensor none;
  const auto refused = [](const std::function<void()>& body, const std::string& what) {
    expect_error(body, Code::failed_precondition,
                 "this Tensor refers to nothing, so " + what + " cannot be read: it was never given a value");
  };
  refused([&] { none.dtype(); }, "its dtype");
  refused([&] { none.shape(); }, "its shape");
  refused([&] { none.partial_shape(); }, "its shape");
  refused([&] { none.rank(); }, "its shape");
  refused([&] { none.dim(0); }, "its shape");
  refused([&] { none.num_elements(); }, "its size");
  refused([&] { none.num_bytes(); }, "its size");
  refused([&] { none.device(); }, "its device");
  refused([&] { none.device_name(); }, "its device");
  refused([&] { none.known_value(); }, "its value");
  refused([&] { none.to_host(); }, "its device");
  refused([&] { none.to(Device::cpu()); }, "its elements");
  refused([&] { none.to_vector<float>(); }, "its elements");
  refused([&] { static_cast<void>(static_cast<bool>(none)); }, "its value");
  refused([&] { none.with_shape({1}); }, "its elements");
  refused([&] { none.rows(0, 1); }, "its elements");
  EXPECT_FALSE(none.is_symbolic());
  EXPECT_EQ(none.str(), "tf.Tensor(<undefined>)");
  expect_error([&] { Variable().value(); }, Code::invalid_argument, "never made");
}

TEST(TensorTest, ReadingChecksDtypeAndCount) {
  const Tensor t{1.f, 2.f};
  expect_error([&] { t.item<float>(); }, Code::invalid_argument, "one value asked of a tensor of shape [2]");
  expect_error([&] { t.host<double>(); }, Code::invalid_argument, "holds float32, read as float64");
  expect_error([&] { t.to_vector<std::string>(); }, Code::invalid_argument, "read as string");
  expect_error([] { Tensor().item<float>(); }, Code::failed_precondition, "refers to nothing");
  expect_error([] { Tensor().host<float>(); }, Code::failed_precondition, "refers to nothing");
  EXPECT_EQ((Tensor{{3.f}}).item<float>(), 3);
  const auto view = Tensor{1.f, 2.f}.host<float>();  // outlives the tensor
  EXPECT_THAT(std::vector<float>(view.begin(), view.end()), ElementsAre(1, 2));
}

TEST(TensorTest, TruthOfOneElement) {
  EXPECT_TRUE(static_cast<bool>(Tensor(true)));
  EXPECT_FALSE(static_cast<bool>(Tensor(false)));
  EXPECT_TRUE(static_cast<bool>(Tensor(-1)));
  EXPECT_FALSE(static_cast<bool>(Tensor(0.f)));
  EXPECT_TRUE(static_cast<bool>(Tensor(std::complex<float>(0, 1))));
  EXPECT_TRUE(static_cast<bool>(Tensor("a")));
  EXPECT_FALSE(static_cast<bool>(Tensor("")));
  EXPECT_TRUE(static_cast<bool>(Tensor{{1.f}}));
  expect_error([] { static_cast<void>(static_cast<bool>(Tensor{1, 2})); }, Code::invalid_argument, "shape [2]");
  expect_error([] { static_cast<void>(static_cast<bool>(Tensor())); }, Code::failed_precondition, "nothing");
  expect_error([] { static_cast<void>(static_cast<bool>(Variable(1.f).handle())); }, Code::invalid_argument,
               "resource");
}

TEST(TensorTest, EmptyAndHuge) {
  const Tensor none = Tensor::empty(float32, {0, 3});
  EXPECT_EQ(none.num_elements(), 0);
  EXPECT_TRUE(none.host<float>().empty());
  EXPECT_EQ(Tensor::empty(DType::string, {2}).to_vector<std::string>(), (std::vector<std::string>{"", ""}));
  expect_error(
      [] {
        Tensor::empty(float32, {int64_t{1} << 40, int64_t{1} << 40});
      },
      Code::resource_exhausted, "too many elements");
  EXPECT_EQ(Tensor::empty(float32, {int64_t{1} << 40, int64_t{1} << 40, 0}).num_elements(), 0);
  expect_error([] { Shape{2, -1}; }, Code::invalid_argument, "sizes >= 0, got [2,?]");
}

TEST(TensorTest, DimCountsFromTheEnd) {
  const Tensor t = Tensor::empty(float32, {2, 3, 4});
  EXPECT_EQ(t.dim(0), 2);
  EXPECT_EQ(t.dim(-1), 4);
  expect_error([&] { t.dim(3); }, Code::invalid_argument, "3");
  expect_error([&] { t.dim(-4); }, Code::invalid_argument, "-4");
}

TEST(TensorTest, StringsShareTheirBytesAcrossThreads) {
  Tensor copy;
  {
    const Tensor t{std::string(1000, 'x'), std::string("y")};
    copy = t.rows(0, 1);
  }
  std::thread([t = copy] { EXPECT_EQ(t.item<std::string>().size(), 1000u); }).join();
  EXPECT_EQ(copy.item<std::string>(), std::string(1000, 'x'));
}

TEST(PartialShapeTest, CompatibleAndMerged) {
  const PartialShape known{2, 3};
  const PartialShape partly{kUnknownDim, 3};
  EXPECT_TRUE(partly.compatible_with(known));
  EXPECT_TRUE(PartialShape::unknown().compatible_with(known));
  EXPECT_FALSE(partly.compatible_with(PartialShape{2, 4}));
  EXPECT_FALSE(partly.compatible_with(PartialShape{3}));
  EXPECT_EQ(partly.merged_with(PartialShape{2, kUnknownDim}), known);
  EXPECT_EQ(PartialShape::unknown().merged_with(partly), partly);
  expect_error([&] { partly.merged_with(PartialShape{2, 4}); }, Code::invalid_argument, "[?,3]");
  EXPECT_EQ(partly.str(), "[?,3]");
  EXPECT_EQ(PartialShape::unknown().str(), "<unknown>");
  EXPECT_EQ(broadcast_shapes(PartialShape{kUnknownDim, 3}, PartialShape{2, 1}), (PartialShape{2, 3}));
  EXPECT_EQ(broadcast_shapes(PartialShape{kUnknownDim}, PartialShape{1}), (PartialShape{kUnknownDim}));
  EXPECT_FALSE(broadcast_shapes(PartialShape::unknown(), PartialShape{1}).has_rank());
}

}  // namespace
}  // namespace runnel
