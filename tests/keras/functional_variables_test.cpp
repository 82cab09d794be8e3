// Variables in the ops between the layers of a functional model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/told.h"

namespace runnel::keras {
namespace {

using test::told_by;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

float only(const Tensor& t) { return t.item<float>(); }

TEST(FunctionalVariables, AreToldOfOnceAndNotTrained) {
  const Variable w(Tensor(2.f), {.name = "stray"});
  const Tensor x = Input({1});
  Tensor y;
  const std::string told = told_by([&] { y = x * w; });
  EXPECT_THAT(told, HasSubstr("[Mul] variable 'stray' is used in an op between the layers of a functional model"));
  EXPECT_THAT(told, HasSubstr("functional_variables_test.cpp"));
  EXPECT_EQ(told_by([&] { y = y * w; }), "");
  Model model(x, Dense({.units = 1})(y));
  EXPECT_EQ(model.weights().size(), 2u);
  model.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_EQ(told_by([&] { model.fit(ones({4, 1}), ones({4, 1}), {.verbose = 0}); }), "");
  EXPECT_EQ(only(w), 2.f);
}

TEST(FunctionalVariables, AreReadInEveryCall) {
  const Variable w(Tensor(2.f), {.trainable = false});
  const Tensor x = Input({1});
  Tensor after, before, several;
  EXPECT_EQ(told_by([&] {
              after = x * w;
              before = w - x;
              several = where(x > w, w, x);
            }),
            "");
  Model model(x, {after, before, several});
  const auto values = [&] {
    std::vector<float> all;
    for (const Tensor& t : nest::flatten(model(Nest(ones({1, 1}))))) all.push_back(only(t));
    return all;
  };
  EXPECT_THAT(values(), ElementsAre(2.f, 1.f, 1.f));
  w.assign(0.5f);
  EXPECT_THAT(values(), ElementsAre(0.5f, -0.5f, 0.5f));
  EXPECT_EQ(only(model.predict(Nest(ones({1, 1})), {.verbose = 0})[0].leaf()), 0.5f);
  w.assign_add(1.f);
  EXPECT_THAT(values(), ElementsAre(1.5f, 0.5f, 1.f));
}

TEST(FunctionalVariables, HaveGradientsInATapeOfTheUser) {
  const Variable w(Tensor(3.f));
  const Tensor x = Input({1});
  Model model;
  told_by([&] { model = Model(x, x * w); });
  GradientTape tape;
  const Tensor y = model(constant({{5.f}}));
  EXPECT_EQ(only(tape.gradient(y, w).value()), 5.f);
}

TEST(FunctionalVariables, AreNotTakenForConstantsWithTheSameMemory) {
  const Tensor given = constant({4.f});
  const Variable w(given), copy(w.value());
  const Tensor x = Input({1});
  const Tensor read = copy;  // of `copy`, though `w` has the same elements
  Model model;
  told_by([&] { model = Model(x, {x * given, x * read}); });
  w.assign({0.f});
  copy.assign({1.f});
  const auto out = nest::flatten(model(Nest(ones({1, 1}))));
  EXPECT_EQ(only(out[0]), 4.f);
  EXPECT_EQ(only(out[1]), 1.f);
}

// Tensors that are made and gone: a view may get the memory of a read.
TEST(FunctionalVariables, AreNotTakenForViewsOfTheirValue) {
  const Variable w(Tensor{{1.f}, {2.f}, {3.f}});
  const Tensor x = Input({3});
  told_by([&] {
    for (int i = 0; i < 8; ++i) {
      const Tensor view = squeeze(w.value());
      const Tensor stopped = stop_gradient(view);
      EXPECT_EQ((x * stopped).partial_shape(), (PartialShape{kUnknownDim, 3}));
    }
  });
}

TEST(FunctionalVariables, AreKnownHoweverOftenOneOpHasThem) {
  const Variable w(Tensor{{1.f}});
  const Tensor x = Input({1});
  Model model;
  told_by([&] { model = Model(x, concat({x, w, w, w, w, w, w}, 1)); });
  w.assign({{2.f}});
  EXPECT_EQ(reduce_sum(model(ones({1, 1}))).item<float>(), 13.f);
}

TEST(FunctionalVariables, ThatAnOpReadsByItself) {
  const Variable rows(Tensor{{1.f}, {2.f}}, {.name = "rows"});
  const Tensor ids = Input({1}, {.dtype = DType::int32});
  Tensor picked;
  EXPECT_THAT(told_by([&] { picked = rows.sparse_read(ids); }), HasSubstr("variable 'rows' is used in an op"));
  Model model(ids, picked);
  rows.assign({{3.f}, {4.f}});
  EXPECT_EQ(model(Tensor{{1}}).to_vector<float>(), std::vector<float>{4});
}

TEST(FunctionalVariables, MayEndBeforeTheModel) {
  const Tensor x = Input({1});
  Model model;
  told_by([&] {
    const Variable w(Tensor(3.f));
    model = Model(x, x + w);
  });
  EXPECT_EQ(only(model(ones({1, 1}))), 4.f);
}

}  // namespace
}  // namespace runnel::keras
