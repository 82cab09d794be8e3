#include "runnel/keras/datasets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/io/datasets.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::keras::datasets {
namespace {

using test::expect_error;

int label_at(const Tensor& labels, size_t i) { return labels.host<uint8_t>()[i]; }

// The real files, as the examples use them: without them and without a network these fail or, for those that a test
// machine may not have, skip.
TEST(KerasDatasets, Mnist) {
  const auto [train, test] = mnist::load_data();
  const auto [x_train, y_train] = train;
  const auto [x_test, y_test] = test;
  EXPECT_EQ(x_train.shape(), (Shape{60000, 28, 28}));
  EXPECT_EQ(y_train.shape(), (Shape{60000}));
  EXPECT_EQ(x_test.shape(), (Shape{10000, 28, 28}));
  EXPECT_EQ(x_train.dtype(), uint8);
  EXPECT_EQ(y_train.dtype(), uint8);
  EXPECT_EQ(label_at(y_train, 0), 5);
  EXPECT_EQ(label_at(y_test, 0), 7);
  double sum = 0;  // the mean pixel of MNIST is 33.318
  for (uint8_t v : x_train.host<uint8_t>()) sum += v;
  EXPECT_NEAR(sum / 47040000, 33.318, 0.001);
}

template <class Load>
void load_or_skip(const std::string& name, Load load) {
  try {
    load();
  } catch (const Error& error) {
    if (error.code() != Code::unavailable) throw;
    GTEST_SKIP() << name << " is not on this machine and cannot be fetched";
  }
}

TEST(KerasDatasets, FashionMnist) {
  load_or_skip("fashion-mnist", [] {
    const auto [train, test] = fashion_mnist::load_data();
    EXPECT_EQ(train.first.shape(), (Shape{60000, 28, 28}));
    EXPECT_EQ(test.second.shape(), (Shape{10000}));
    EXPECT_EQ(label_at(train.second, 0), 9);
    double sum = 0;  // the mean pixel is 72.940
    for (uint8_t v : train.first.host<uint8_t>()) sum += v;
    EXPECT_NEAR(sum / 47040000, 72.940, 0.001);
  });
}

TEST(KerasDatasets, Cifar10) {
  load_or_skip("cifar10", [] {
    const auto [train, test] = cifar10::load_data();
    EXPECT_EQ(train.first.shape(), (Shape{50000, 32, 32, 3}));
    EXPECT_EQ(train.second.shape(), (Shape{50000, 1}));
    EXPECT_EQ(test.first.shape(), (Shape{10000, 32, 32, 3}));
    EXPECT_EQ(label_at(train.second, 0), 6);
  });
}

TEST(KerasDatasets, LoadGivesADataset) {
  const auto test = load("mnist", "test", {.as_supervised = true});
  const data::ElementSpec spec = test.element_spec();
  EXPECT_EQ(spec[0].leaf().str(), "uint8[28,28,1]");
  EXPECT_EQ(spec[1].leaf().str(), "int64[]");
  EXPECT_EQ(test.cardinality(), 10000);
  const auto [arrays, held_out] = mnist::load_data();
  for (const auto& [image, label] : test.as<Tensor, Tensor>().take(1)) {
    EXPECT_EQ(label.item<int64_t>(), 7);
    EXPECT_EQ(image.to_vector<uint8_t>(), held_out.first[0].to_vector<uint8_t>());
  }
  const data::ElementSpec map = load("mnist", "test").element_spec();
  EXPECT_EQ(map["image"].leaf().str(), "uint8[28,28,1]");
  EXPECT_EQ(map["label"].leaf().str(), "int64[]");
}

TEST(KerasDatasets, PartsOfSplits) {
  const auto first_label = [](const std::string& split) {
    for (const auto& [image, label] : load("mnist", split, {.as_supervised = true}).as<Tensor, Tensor>().take(1)) {
      return label.item<int64_t>();
    }
    return int64_t{-1};
  };
  const auto count = [](const std::string& split) { return load("mnist", split).cardinality(); };
  EXPECT_EQ(count("train[:80%]"), 48000);
  EXPECT_EQ(count("train[-10%:]"), 6000);
  EXPECT_EQ(count("train[100:150]"), 50);
  EXPECT_EQ(count("train[90000:]"), 0);
  EXPECT_EQ(count("train[:100]+test[:50]"), 150);
  const Tensor labels = mnist::load_data().first.second;
  EXPECT_EQ(first_label("train[123:]"), label_at(labels, 123));
  EXPECT_EQ(first_label("train[50%:]"), label_at(labels, 30000));
  EXPECT_EQ(first_label("train[-1:]"), label_at(labels, 59999));
  EXPECT_EQ(first_label("test[:1]+train[:1]"), 7);
}

TEST(KerasDatasets, Errors) {
  expect_error([] { load("nmist", "train"); }, Code::not_found, "known: mnist, fashion-mnist, cifar10");
  expect_error([] { load("mnist", "validation"); }, Code::invalid_argument, "there is no 'validation'");
  expect_error([] { load("mnist", "train[1]"); }, Code::invalid_argument, "a part is written as");
  expect_error([] { load("mnist", "train[a:]"); }, Code::invalid_argument, "'a' is neither a number");
  expect_error([] { load("mnist", "train[:101%]"); }, Code::invalid_argument, "'101%' is neither");
  expect_error([] { load("mnist", "train+"); }, Code::invalid_argument, "there is no ''");
}

}  // namespace
}  // namespace runnel::keras::datasets
