// The code of the pages about Keras, so that what is copied from there compiles. The test doc_snippets compares.
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

namespace runnel::keras_pages {

struct MyMetric : keras::Metric {
  MyMetric() : Metric("mine") {}
  void update_state(const Tensor&, const Tensor&, const Tensor&) override {}
  Tensor result() const override { return 0.f; }
};
struct MyCallback : keras::Callback {};

// clang-format off

// docs/keras.md

void sequential() {
  keras::Sequential model({keras::Flatten(), keras::Dense(100, {.activation = "relu"}), keras::Dense(10), keras::Softmax()});
}

void functional() {
  Tensor inputs = keras::Input({28, 28, 1});
  Tensor x = keras::Flatten()(inputs);
  x = keras::Dense({.units = 100, .activation = "relu"})(x);
  keras::Model model(inputs, nn::softmax(keras::Dense(10)(x)));
}

struct MLP : keras::Model {
  keras::Flatten flatten{this, "flatten"};
  keras::Dense dense1{this, "dense1", {.units = 100, .activation = nn::relu}};
  keras::Dense dense2{this, "dense2", 10};
  Tensor call(const Tensor& x, const keras::CallArgs&) override { return nn::softmax(dense2(dense1(flatten(x)))); }
};

void several_inputs(const Tensor& x1, const Tensor& x2, const Tensor& v1, const Tensor& v2, const Tensor& y, const Tensor& vy) {
  Tensor a = keras::Input({3}), b = keras::Input({5});
  keras::Model model({a, b}, keras::Dense(1)(keras::Concatenate()({a, b})));
  model.compile({.loss = "mse", .metrics = "mae"});
  model.fit({x1, x2}, y, {.epochs = 5, .validation_data = {{v1, v2}, vy}});
  Tensor result = model.predict({x1, x2});
  result = model({x1, x2});
}

void registered(keras::Model& model) {
  struct Linear : keras::Layer { using Layer::Layer; };                        // a layer, optimizer, loss, metric or schedule
  keras::utils::register_keras_serializable<Linear>();                         // "Custom>Linear"
  keras::utils::register_keras_serializable<Linear>("mine", "Line");           // or "mine>Line"

  struct Ramp {                                                                // an initializer with a setting
    double step = 1;
    static constexpr auto fields() { return field_list(field("step", &Ramp::step)); }
    Tensor operator()(const Shape& shape, DType dtype) const { return fill(shape, cast(step, dtype)); }
  };
  keras::utils::register_keras_serializable<Ramp>();
  keras::utils::register_keras_serializable("squash", [](const Tensor& x) { return x / (abs(x) + 1); });

  const keras::Dense dense({.units = 4, .activation = "squash", .kernel_initializer = Ramp{0.5}});
  model.compile({.optimizer = "MyOptimizer", .loss = "my_loss", .metrics = {"MyMetric"}});
}

void compile_and_fit(keras::Model& model, const Tensor& x, const Tensor& y, const Tensor& x_test, const Tensor& y_test) {
  keras::optimizers::Adam adam(0.001);
  model.compile({.optimizer = adam,                                        // its state is shared; or Adam(0.001), "adam"
                 .loss = keras::losses::sparse_categorical_crossentropy,   // or a name, an object; {a, b} for two outputs
                 .metrics = {"accuracy", MyMetric()}});
  keras::callbacks::EarlyStopping stopping({.patience = 2});               // can be asked afterwards: stopped_epoch()
  keras::History history =
      model.fit(x, y, {.batch_size = 50, .epochs = 5, .callbacks = {stopping, MyCallback()}, .validation_split = 0.1});
  std::cout << history["loss"] << "\n";                                     // [0.4113, 0.2004, 0.1502, 0.1211, 0.1029]
  keras::Logs result = model.evaluate(x_test, y_test);
  std::cout << result["accuracy"] << "\n" << result << "\n";               // 0.9612, and [0.1204, 0.9612]
  std::cout << result[1] << "\n";                                          // 0.9612: in the order of metrics_names()
  Tensor probabilities = model.predict(x_test);
}

void keep(keras::Model& model) {
  const std::string json = model.to_json();                                // what the layers are and how they are connected
  model.save_weights("model.weights.h5");

  const auto again = keras::model_from_json(json);                         // elsewhere: the same model with other weights
  again->load_weights("model.weights.h5");
}

struct OwnStep : keras::Model {
  keras::StepLogs train_step(const keras::TrainingBatch& batch) override {
    GradientTape tape;
    const Nest y_pred = (*this)(batch.x, {.training = true});
    const Tensor loss = compute_loss(batch, y_pred);
    apply_gradients(loss, tape);
    return compute_metrics(batch, y_pred);
  }
};

void own_loop(keras::Model& model, keras::optimizers::Adam& optimizer) {
  auto train_one_step = function([&](const Tensor& X, const Tensor& y) {
    GradientTape tape;
    const Tensor y_pred = model(X);
    Tensor loss = keras::losses::sparse_categorical_crossentropy(y, y_pred);
    loss = reduce_mean(loss);
    print("loss", loss);
    const auto grads = tape.gradient(loss, model.variables());
    optimizer.apply_gradients(zip(grads, model.variables()));             // or both: optimizer.minimize(loss, variables, tape)
  });
}

void callbacks() {
  struct StopWhenGood : keras::Callback {
    void on_epoch_end(int64_t epoch, keras::Logs& logs) override {           // may add to the logs: logs.set("name", value)
      if (epoch >= 3 && logs["loss"] < 0.1) model()->stop_training = true;
    }
    void on_train_batch_end(int64_t batch, const keras::Logs& logs) override { print(batch, logs["loss"]); }
  };
  keras::callbacks::LambdaCallback report({.on_epoch_end = [](int64_t epoch, keras::Logs& logs) { print(epoch, logs["loss"]); }});
}

// docs/keras_recurrent.md

void sequences() {
  keras::Sequential model({keras::Embedding(10000, 64, {.mask_zero = true}), keras::Bidirectional(keras::LSTM(64)),
                           keras::Dense(1, {.activation = "sigmoid"})});
}

void one_cell(const Tensor& x, const Tensor& batch_size, int64_t length) {
  keras::LSTMCell cell(256);
  keras::States state = cell.get_initial_state(batch_size);
  for (int64_t t = 0; t < length; ++t) {
    auto [output, next] = cell(x(all, t), state);
    state = next;
  }
}

struct SumCell : keras::RNNCell {
  using RNNCell::RNNCell;
  std::vector<int64_t> state_size() const override { return {8}; }
  keras::CellStep step(const Tensor& x, const keras::States& states, const keras::CallArgs&) override {
    const Tensor sum = states[0] + x;
    return {sum, {sum}};
  }
};

void own_cell() {
  keras::RNN layer(std::make_shared<SumCell>(), {.return_sequences = true});
}

// docs/keras_layers.md

void making(const Tensor& x, const Tensor& a, const Tensor& b) {
  keras::Dense dense({.units = 10, .activation = "relu"});    // the settings, in Keras's order and with its defaults
  keras::Dense same(10, {.activation = "relu"});              // main arguments need no name
  Tensor y = dense(x);                                        // makes the weights at the first call: the shape of x is known now
  y = dense(x, {.training = true});                           // what goes with a call: training, mask, ...
  Tensor z = keras::Dense(10)(x);                             // in place
  auto shared = keras::make<keras::Dense>(10);                // on the heap, for several models; called as shared(x)
  Tensor sum = keras::Add()({a, b});                          // layers that take several tensors
}

void settings() {
  keras::Dense({.units = 10,
                .activation = keras::activations::leaky_relu(0.1),                      // or "tanh", nn::relu, a lambda
                .kernel_initializer = keras::initializers::he_normal(),                 // or "he_normal"
                .kernel_regularizer = keras::regularizers::l2(1e-4),
                .kernel_constraint = [](const Tensor& w) { return clip_by_value(w, -1, 1); }});
}

void own_layer(const Tensor& x) {
  struct Linear : keras::Layer {
    Variable w, b;
    using Layer::Layer;
    void build(const PartialShape& input) override {
      w = add_weight({.name = "w", .shape = {known_dim(input, -1), 1}, .initializer = "zeros"});
      b = add_weight({.name = "b", .shape = {1}, .initializer = "zeros"});
    }
    Tensor call(const Tensor& x, const keras::CallArgs&) override { return matmul(x, w) + b; }
  };
  Linear linear;
  Tensor y = linear(x);
}

struct ScaleOptions {
  double factor = 1;
  std::string name = {};
  keras::Policy dtype = {};
  bool trainable = true;
  using Positional = keras::PositionalSettings<&ScaleOptions::factor>;                           // Scale(2)
  static constexpr auto fields() { return field_list(field("factor", &ScaleOptions::factor)); }  // get_config, from_config
};
struct Scale : keras::LayerOf<Scale, ScaleOptions> {
  static constexpr const char* kClassName = "Scale";
  using LayerOf::LayerOf;
  Tensor call(const Tensor& x, const keras::CallArgs&) override { return x * options_.factor; }
};

void own_options(const Tensor& x) {
  Tensor y = Scale(2)(x);
  keras::utils::register_keras_serializable<Scale>();                // models with it can be made from their configurations
}

// docs/keras_layers_image.md

void images() {
  Tensor input = keras::Input({28, 28, 1});
  Tensor x = keras::Conv2D({.filters = 32, .kernel_size = {5}, .padding = "same", .activation = "relu"})(input);
  x = keras::MaxPool2D({.pool_size = {2}})(x);
  x = keras::BatchNormalization()(x);
  Tensor output = keras::Dense({.units = 10, .activation = "softmax"})(keras::GlobalAveragePooling2D()(x));
  keras::Model model(input, output);
}

void scaling(const Tensor& images) {
  keras::Normalization scale;
  scale.adapt(images);                                // [samples, ...], or a dataset of such batches
  Tensor x = scale(images);                           // mean 0 and variance 1 for each position of the last dimension
}

void transfer() {
  auto base = keras::applications::mobilenet_v2({.input_shape = {160, 160, 3}, .include_top = false, .pooling = "avg"});
  base->set_trainable(false);
  Tensor input = keras::Input({160, 160, 3});
  Tensor x = base(keras::Rescaling({.scale = 1 / 127.5, .offset = -1})(input));
  keras::Model model(input, keras::Dense({.units = 1})(x));
}

// clang-format on

TEST(KerasPages, CodeRuns) {
  sequential();
  functional();
  const Tensor x1 = ones({8, 3}), x2 = ones({8, 5}), y = ones({8, 1});
  several_inputs(x1, x2, x1, x2, y, y);
  sequences();
  one_cell(ones({2, 3, 4}), 2, 3);
  EXPECT_EQ(keras::RNN(std::make_shared<SumCell>())(ones({2, 5, 8})).shape(), (Shape{2, 8}));
  making(x1, x1, x1);
  own_layer(x1);
  own_options(x1);
}

}  // namespace runnel::keras_pages
