// Errors of Keras's objects and descriptions name the line of the program that made the mistake.
#include "tests/support/caller_lines.h"

#include "runnel/keras/keras.h"
#include "runnel/keras/plot.h"
#include "runnel/keras/plot_model.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

TEST(KerasCallerLines, Names) {
  EXPECT_NAMES_THIS_LINE(DenseOptions{.activation = "reluu"});
  EXPECT_NAMES_THIS_LINE(Dense({.units = 1, .activation = "reluu"}));
  EXPECT_NAMES_THIS_LINE(Dense({.units = 1, .kernel_initializer = "onez"}));
  EXPECT_NAMES_THIS_LINE(Dense({.units = 1, .kernel_regularizer = "l9"}));
  EXPECT_NAMES_THIS_LINE(Dense({.units = 1, .kernel_constraint = "none_at_all"}));
  EXPECT_NAMES_THIS_LINE(Dense({.units = 1, .dtype = "float33"}));
  EXPECT_NAMES_THIS_LINE(Activation(std::string("reluu")));
  EXPECT_NAMES_THIS_LINE(mixed_precision::set_global_policy("int32"));
  EXPECT_NAMES_THIS_LINE(optimizers::get("adm"));
  EXPECT_NAMES_THIS_LINE(losses::get("msee"));
  EXPECT_NAMES_THIS_LINE(metrics::get("acuracy"));
}

TEST(KerasCallerLines, Settings) {
  EXPECT_NAMES_THIS_LINE(optimizers::SGD({.momentum = 3}));
  EXPECT_NAMES_THIS_LINE(optimizers::Adam({.clipnorm = 1, .global_clipnorm = 1}));
  EXPECT_NAMES_THIS_LINE(optimizers::Adagrad({.initial_accumulator_value = -1}));
  EXPECT_NAMES_THIS_LINE(optimizers::Ftrl({.learning_rate_power = 1}));
  EXPECT_NAMES_THIS_LINE(losses::MeanSquaredError({.reduction = "mean"}));
  EXPECT_NAMES_THIS_LINE(optimizers::schedules::PiecewiseConstantDecay({.boundaries = {1}, .values = {1}}));
  EXPECT_NAMES_THIS_LINE(callbacks::EarlyStopping({.mode = "up"}));
  EXPECT_NAMES_THIS_LINE(callbacks::ReduceLROnPlateau({.factor = 2}));
  EXPECT_NAMES_THIS_LINE(callbacks::LearningRateScheduler(LearningRateSchedulerOptions()));
}

TEST(KerasCallerLines, Descriptions) {
  const Config map = Config::Map{{"class_name", "Nope"}, {"config", Config::Map()}}, number(1);
  EXPECT_NAMES_THIS_LINE(Config::from_json("{"));
  EXPECT_NAMES_THIS_LINE(map["nope"]);
  EXPECT_NAMES_THIS_LINE(number["nope"]);
  EXPECT_NAMES_THIS_LINE(number.as_text());
  EXPECT_NAMES_THIS_LINE(map.as_bool());
  EXPECT_NAMES_THIS_LINE(map.as_int());
  EXPECT_NAMES_THIS_LINE(map.as_double());
  EXPECT_NAMES_THIS_LINE(map.items());
  EXPECT_NAMES_THIS_LINE(map.as_shape());
  EXPECT_NAMES_THIS_LINE(map.as_ints());
  EXPECT_NAMES_THIS_LINE(map.as_doubles());
  EXPECT_NAMES_THIS_LINE(number.entries());
  EXPECT_NAMES_THIS_LINE(number.find("a"));
  EXPECT_NAMES_THIS_LINE(Config(1).set("a", 1));
  EXPECT_NAMES_THIS_LINE(layer_from_config(map));
  EXPECT_NAMES_THIS_LINE(losses::deserialize(map));
  EXPECT_NAMES_THIS_LINE(metrics::deserialize(map));
  EXPECT_NAMES_THIS_LINE(optimizers::deserialize(map));
  EXPECT_NAMES_THIS_LINE(optimizers::schedules::deserialize(map));
  EXPECT_NAMES_THIS_LINE(Model::from_config(map));
  EXPECT_NAMES_THIS_LINE(Sequential::from_config(map));
}

struct Own : Model {
  Tensor call(const Tensor& x, const CallArgs&) override { return x; }
};

struct Hears : Callback {
  using Callback::model;
};

TEST(KerasCallerLines, Models) {
  Own own;
  const TrainingBatch batch;
  GradientTape tape;
  EXPECT_NAMES_THIS_LINE(own.graph());
  EXPECT_NAMES_THIS_LINE(own.inputs());
  EXPECT_NAMES_THIS_LINE(own.outputs());
  EXPECT_NAMES_THIS_LINE(own.to_json());
  EXPECT_NAMES_THIS_LINE(own.optimizer());
  EXPECT_NAMES_THIS_LINE(own.compute_loss(batch, Tensor(1.f)));
  EXPECT_NAMES_THIS_LINE(own.apply_gradients(Tensor(1.f), tape));
  EXPECT_NAMES_THIS_LINE(clone_model(own));
  EXPECT_NAMES_THIS_LINE(Sequential({LayerPtr()}));
  EXPECT_NAMES_THIS_LINE(Sequential({Tensor(1.f), Dense(1)}));
  EXPECT_NAMES_THIS_LINE(Sequential({Dense({.units = 1, .name = "a"}), Dense({.units = 1, .name = "a"})}));
  EXPECT_NAMES_THIS_LINE(Sequential(std::vector<LayerPtr>{nullptr}));
  EXPECT_NAMES_THIS_LINE(Dense(1).compute_output_shape({2, -1, -1, kUnknownDim}));
  EXPECT_NAMES_THIS_LINE(Dense(1).build_from_shapes(PartialShape{2, kUnknownDim}));
  EXPECT_NAMES_THIS_LINE(Hears().model());
}

TEST(KerasCallerLines, LossesAndMetrics) {
  losses::MeanSquaredError mse;
  metrics::SparseCategoricalAccuracy accuracy;
  EXPECT_NAMES_THIS_LINE(mse(ones({2, 3}), ones({2, 2})));
  EXPECT_NAMES_THIS_LINE(accuracy(ones({3}), ones({2, 2})));
}

TEST(KerasCallerLines, DataAndPictures) {
  History history;
  EXPECT_NAMES_THIS_LINE(datasets::load("nope", "train"));
  EXPECT_NAMES_THIS_LINE(utils::history_svg({}));
  EXPECT_NAMES_THIS_LINE(utils::plot_history(history, "/tmp/never.svg"));
  EXPECT_NAMES_THIS_LINE(utils::plot_model(Own(), "/no/such/folder/model.svg"));
  EXPECT_NAMES_THIS_LINE(utils::register_keras_serializable("a>b", [](const Tensor& x) { return x; }));
}

}  // namespace
}  // namespace runnel::keras
