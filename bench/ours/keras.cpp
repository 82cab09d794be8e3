// Training steps of Keras layers and models.
#include "runnel/keras/keras.h"
#include "bench/common.h"
#include "examples/mnist_models.h"
#include "runnel/keras/applications/mobilenet_v2.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;
using Call = std::function<void()>;

Tensor values(const Shape& shape, unsigned seed) {
  Tensor t = Tensor::empty(float32, shape);
  bench::fill(t.mutable_data<float>(), static_cast<size_t>(t.num_elements()), seed);
  return t;
}

// A step of a recurrent layer alone: the mean of squares of the last output's distance from a target.
Call recurrent_step(const keras::LayerPtr& layer, const Shape& sequences, int64_t units) {
  const Tensor x = values(sequences, 9), target = values({sequences[0], units}, 10);
  (*layer)(x);
  const auto adam = std::make_shared<keras::optimizers::Adam>();
  auto step = function([=](const Tensor& in, const Tensor& wanted) {
    GradientTape tape;
    const Tensor loss = reduce_mean(squared_difference((*layer)(in), wanted));
    adam->minimize(loss, layer->trainable_variables(), tape);
    return loss;
  });
  return [=] { step(x, target); };
}

// Images of MNIST's shape and labels, as many as the opponent's.
struct Samples {
  explicit Samples(int64_t count) : x(values({count, 28, 28, 1}, 9) + 0.5), y(cast(range(count) % 10, int32)) {}
  Tensor x, y;
};

std::shared_ptr<keras::Model> sequential(const std::string& model) {
  if (model == "MLP") {
    return std::make_shared<keras::Sequential>(
        std::initializer_list<keras::LayerArg>{keras::Flatten(), keras::Dense({.units = 100, .activation = "relu"}),
                                               keras::Dense({.units = 10}), keras::Softmax()});
  }
  return std::make_shared<keras::Sequential>(std::initializer_list<keras::LayerArg>{
      keras::Conv2D({.filters = 32, .kernel_size = {5, 5}, .padding = "same", .activation = "relu"}),
      keras::MaxPool2D({.pool_size = {2, 2}, .strides = {2, 2}}),
      keras::Conv2D({.filters = 64, .kernel_size = {5, 5}, .padding = "same", .activation = "relu"}),
      keras::MaxPool2D({.pool_size = {2, 2}, .strides = {2, 2}}), keras::Reshape({.target_shape = {7 * 7 * 64}}),
      keras::Dense({.units = 1024, .activation = "relu"}), keras::Dense({.units = 10}), keras::Softmax()});
}

// One epoch through fit: shuffled, batched and prefetched from tensors, with the accuracy beside the loss.
Call fit(const char* model_name, int64_t count) {
  const std::shared_ptr<keras::Model> model = sequential(model_name);
  model->compile({.optimizer = keras::optimizers::Adam(0.001),
                  .loss = "sparse_categorical_crossentropy",
                  .metrics = {"sparse_categorical_accuracy"}});
  return [=, data = Samples(count)] { model->fit(data.x, data.y, {.batch_size = 50, .verbose = 0}); };
}

// A step of a loop of one's own, op by op.
Call mlp_eager() {
  const auto model = std::make_shared<mnist::MLP>();
  const auto adam = std::make_shared<keras::optimizers::Adam>(0.001);
  return [=, data = Samples(50)] {
    GradientTape tape;
    const Tensor y_pred = (*model)(data.x, {.training = true});
    const Tensor loss = reduce_mean(keras::losses::sparse_categorical_crossentropy(data.y, y_pred));
    adam->minimize(loss, model->trainable_variables(), tape);
  };
}

Call mlp_predict1() {
  const auto model = std::make_shared<mnist::MLP>();
  return [=, x = values({1, 28, 28, 1}, 9)] { model->predict(x, {.verbose = 0}); };
}

// While one lives, layers are made with this policy.
class PolicyFor {
 public:
  explicit PolicyFor(const char* name) { keras::mixed_precision::set_global_policy(name); }
  ~PolicyFor() { keras::mixed_precision::set_global_policy("float32"); }
};

// A step of three layers of 2048 units, batch 512, by the policy of this name.
Call wide_step(const char* policy) {
  const PolicyFor of_layers(policy);
  const auto model = std::make_shared<keras::Sequential>(std::initializer_list<keras::LayerArg>{
      keras::Dense({.units = 2048, .activation = "relu"}), keras::Dense({.units = 2048, .activation = "relu"}),
      keras::Dense({.units = 2048, .activation = "relu"}), keras::Dense({.units = 10, .dtype = "float32"})});
  model->compile({.optimizer = keras::optimizers::SGD(0.01), .loss = "mse"});
  return [=, x = values({512, 2048}, 9), y = values({512, 10}, 10)] { model->train_on_batch(x, y); };
}

// A step of the CNN for MNIST, batch 50, by the policy of this name.
Call cnn_step(const char* policy) {
  const PolicyFor of_layers(policy);
  const std::shared_ptr<keras::Model> model = sequential("CNN");
  model->compile({.optimizer = keras::optimizers::Adam(0.001), .loss = "sparse_categorical_crossentropy"});
  return [=, data = Samples(50)] { model->train_on_batch(data.x, data.y); };
}

// A step of a transformer's encoder: 4 layers of width 256 with 8 heads, 16 sequences of 128.
Call encoder_step(const char* policy) {
  const PolicyFor of_layers(policy);
  const Tensor x = keras::Input({128, 256});
  Tensor h = x;
  for (int i = 0; i < 4; ++i) {
    const Tensor attended = keras::MultiHeadAttention({.num_heads = 8, .key_dim = 32})(h, h);
    h = keras::LayerNormalization()(keras::Add()({h, attended}));
    const Tensor inner = keras::Dense({.units = 1024, .activation = "gelu"})(h);
    h = keras::LayerNormalization()(keras::Add()({h, keras::Dense({.units = 256})(inner)}));
  }
  const auto model = std::make_shared<keras::Model>(x, h);
  model->compile({.optimizer = keras::optimizers::Adam(0.001), .loss = "mse"});
  return [=, in = values({16, 128, 256}, 9), out = values({16, 128, 256}, 10)] { model->train_on_batch(in, out); };
}

Call mobilenetv2_step() {
  const std::shared_ptr<keras::Model> model = keras::applications::mobilenet_v2({});
  model->compile({.optimizer = keras::optimizers::SGD(0.01), .loss = "sparse_categorical_crossentropy"});
  return [=, x = values({8, 224, 224, 3}, 9), y = cast(range(8), int32)] { model->train_on_batch(x, y); };
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"lstm_step",
       [](int) {
         return std::vector<Call>{recurrent_step(keras::make<keras::LSTM>({.units = 256}), {50, 40, 128}, 256)};
       }},
      {"lstm_train_100",
       [](int) {
         return std::vector<Call>{recurrent_step(keras::make<keras::LSTM>({.units = 128}), {32, 100, 64}, 128)};
       }},
      {"gru_train_200",
       [](int) {
         return std::vector<Call>{recurrent_step(keras::make<keras::GRU>({.units = 128}), {32, 200, 64}, 128)};
       }},
      {"mlp_fit", [](int) { return std::vector<Call>{fit("MLP", 6000)}; }},
      {"cnn_fit", [](int) { return std::vector<Call>{fit("CNN", 300)}; }},
      {"mlp_eager", [](int) { return std::vector<Call>{mlp_eager()}; }},
      {"mlp_predict1", [](int) { return std::vector<Call>{mlp_predict1()}; }},
      {"mobilenetv2_step", [](int) { return std::vector<Call>{mobilenetv2_step()}; }},
      {"wide_bf16_step", [](int) { return std::vector<Call>{wide_step("mixed_bfloat16")}; }},
      {"wide_bf16_step_float32", [](int) { return std::vector<Call>{wide_step("float32")}; }},
      {"wide_pure_bf16_step", [](int) { return std::vector<Call>{wide_step("bfloat16")}; }},
      {"wide_pure_bf16_step_float32", [](int) { return std::vector<Call>{wide_step("float32")}; }},
      {"cnn_bf16_step", [](int) { return std::vector<Call>{cnn_step("mixed_bfloat16")}; }},
      {"cnn_bf16_step_float32", [](int) { return std::vector<Call>{cnn_step("float32")}; }},
      {"encoder_bf16_step", [](int) { return std::vector<Call>{encoder_step("mixed_bfloat16")}; }},
      {"encoder_bf16_step_float32", [](int) { return std::vector<Call>{encoder_step("float32")}; }},
  };
  return bench::main_of(argc, argv, cases, set_num_threads);
}
