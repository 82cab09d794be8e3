#pragma once

// The models and other objects of which TensorFlow wrote the checkpoints of the fixtures, and those that it judges.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runnel/keras/keras.h"
#include "runnel/keras/metrics_mean_tensor.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint.h"

namespace runnel::test {

using namespace keras;  // NOLINT: as in programs
using train::Checkpoint;
using train::CheckpointPart;
using train::CheckpointParts;

// The objects of a case.
struct Objects {
  CheckpointParts parts;
  std::shared_ptr<Trackable> root = nullptr;
  std::shared_ptr<Model> model = nullptr;  // whose outputs the fixture states, or that is trained
  OptimizerPtr optimizer = nullptr;        // of a model that is trained
  bool one_by_one = false;                 // the parts were set later, in that order
  Checkpoint checkpoint() const {
    if (root) return Checkpoint(root, parts);
    if (!one_by_one) return Checkpoint(parts);
    Checkpoint made;
    for (const auto& [name, part] : parts) made.track(name, part);
    return made;
  }
};

inline Objects of_model(std::shared_ptr<Model> model) { return {.parts = {{"model", model}}, .model = model}; }

inline constexpr int64_t kSize = 4;

inline std::shared_ptr<Sequential> sequential_model() {
  const auto model = std::make_shared<Sequential>(std::initializer_list<LayerArg>{Input({4})});
  model->add(Dense({.units = kSize, .activation = "relu", .name = "first"}));
  model->add(Dense({.units = 2, .name = "second"}));
  return model;
}

inline std::shared_ptr<Sequential> conv_bn_model() {
  return std::make_shared<Sequential>(std::initializer_list<LayerArg>{
      Input({6, 6, 2}), Conv2D({.filters = kSize, .kernel_size = {3, 3}, .padding = "same", .activation = "relu"}),
      BatchNormalization(), MaxPooling2D(), Flatten(), Dense({.units = 3, .activation = "softmax"})});
}

inline std::shared_ptr<Model> embedding_model() {
  return std::make_shared<Sequential>(std::initializer_list<LayerArg>{
      Input({5}, {.dtype = DType::int32}), Embedding({.input_dim = 7, .output_dim = kSize, .mask_zero = true}),
      GlobalAveragePooling1D(), Dense({.units = 1})});
}

inline std::shared_ptr<Model> shared_layer_model() {
  const Tensor a = Input({3}, {.name = "left"}), b = Input({3}, {.name = "right"});
  const auto shared = make<Dense>({.units = kSize, .activation = "tanh", .name = "shared"});
  const Tensor x = Concatenate({.name = "join"})(Nest::list({shared(a), shared(b)})).leaf();
  return std::make_shared<Model>(Nest::list({a, b}),
                                 Nest::list({Dense({.units = 2, .name = "main"})(x),
                                             Dense({.units = 1, .activation = "sigmoid", .name = "aux"})(x)}));
}

inline std::shared_ptr<Model> attention_model() {
  const Tensor i = Input({4, 6});
  const Tensor y = MultiHeadAttention({.num_heads = 2, .key_dim = kSize, .name = "mha"})(Nest::list({i, i})).leaf();
  const Tensor normal = LayerNormalization({.name = "ln"})(Add()(Nest::list({i, y})).leaf());
  return std::make_shared<Model>(i, Dense({.units = 2})(normal));
}

inline std::shared_ptr<Model> nested_model() {
  const auto inner = std::make_shared<Sequential>(
      std::initializer_list<LayerArg>{Input({4}), Dense({.units = kSize}), Dense({.units = 3})},
      LayerOptions{.name = "inner"});
  const auto middle = std::make_shared<Sequential>(std::initializer_list<LayerArg>{inner, Dense({.units = 2})},
                                                   LayerOptions{.name = "middle"});
  const Tensor i = Input({4});
  return std::make_shared<Model>(i, Dense({.units = 1, .name = "outer_dense"})((*middle)(i)),
                                 LayerOptions{.name = "outer"});
}

inline std::shared_ptr<Model> recurrent_model() {
  const Tensor i = Input({4, 3});
  Tensor x = Bidirectional({.layer = LSTM({.units = kSize, .return_sequences = true})})(i);
  x = GRU({.units = kSize, .return_sequences = true})(x);
  x = RNN({.cell = {make<LSTMCell>({.units = 2}), make<GRUCell>({.units = 3})}})(x);
  return std::make_shared<Model>(i, x);
}

struct Subclassed : Model {
  Subclassed() {
    const auto blocks = std::make_shared<TrackableList>();
    for (const char* activation : {"relu", "linear"}) {
      layers.push_back(std::make_shared<Dense>(DenseOptions{.units = kSize, .activation = activation}));
      blocks->append(layers.back());
    }
    track("blocks", blocks);
    const auto heads = std::make_shared<TrackableDict>();
    for (const int64_t units : {1, 2}) {
      layers.push_back(std::make_shared<Dense>(DenseOptions{.units = units}));
      heads->set(units == 1 ? "a" : "b", layers.back());
    }
    track("heads", heads);
    track("scale", scale);
  }
  Tensor call(const Tensor& input, const CallArgs&) override {
    const Tensor x = (*layers[1])((*layers[0])(input));
    return concat({(*layers[2])(x), (*layers[3])(x)}, -1) * scale;
  }
  std::vector<std::shared_ptr<Dense>> layers;
  Variable scale{Tensor(1.5f), {.name = "scale"}};
};

inline std::shared_ptr<Model> subclassed_model() {
  const auto model = std::make_shared<Subclassed>();
  (*model)(zeros({1, 4}));
  return model;
}

inline std::shared_ptr<Model> compiled_model() {
  const auto model = sequential_model();
  model->compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
  model->fit(random::uniform({8, 4}), random::uniform({8, 2}), {.batch_size = 4, .epochs = 2, .verbose = 0});
  return model;
}

inline Objects trained_model(const OptimizerPtr& optimizer) {
  const auto model = sequential_model();
  optimizer->build(model->trainable_variables());
  return {.parts = {{"model", model}, {"optimizer", optimizer}}};
}

inline Objects metric_objects() {
  const auto mean_tensor = std::make_shared<metrics::MeanTensor>();
  mean_tensor->update_state(Tensor{0.f, 0.f, 0.f});
  return {.parts = {{"acc", std::make_shared<metrics::SparseCategoricalAccuracy>()},
                    {"auc", std::make_shared<metrics::AUC>(metrics::AUCOptions{.num_thresholds = 5})},
                    {"mean", std::make_shared<metrics::Mean>()},
                    {"meantensor", mean_tensor},
                    {"miou", std::make_shared<metrics::MeanIoU>(3)},
                    {"prec", std::make_shared<metrics::Precision>()}}};
}

struct Bag : Trackable {};

inline Objects containers() {
  const auto v = [](const Shape& shape) { return Variable(zeros(shape)); };
  const auto bag = std::make_shared<Bag>();
  const CheckpointPart items(std::vector<CheckpointPart>{
      v({2}), v({4, 2}), std::vector<CheckpointPart>{v({1}), std::map<std::string, CheckpointPart>{{"deep", v({3})}}}});
  items.track(*bag, "items");
  const auto named = std::make_shared<TrackableDict>();
  for (const auto& [key, size] :
       std::vector<std::pair<std::string, int64_t>>{{"b", 2}, {"a", 1}, {"with/slash", 2}, {"dot.name", 1}, {"", 1}}) {
    named->set(key, v({size}));
  }
  bag->track("named", named);
  CheckpointPart(std::vector<CheckpointPart>{v({1}), std::vector<CheckpointPart>{v({2}), v({3})}}).track(*bag, "pair");
  const Variable first = v({2, 2});
  bag->track("first", first);
  bag->track("second", first);
  const auto mixed = std::make_shared<TrackableList>();
  mixed->track("1", v({1}));  // [1, variable, "text", None]
  bag->track("mixed", mixed);
  bag->track("_private", v({1}));
  bag->track("with_underscore__", v({1}));
  return {.parts = {{"again", items}, {"bag", bag}}};
}

inline Variable scalar(float value) { return Variable(Tensor(value)); }

inline Objects nested_checkpoints() {
  return {.parts = {{"a", Checkpoint({{"v", scalar(1)}})},
                    {"l", std::vector<CheckpointPart>{scalar(2)}},
                    {"d", std::map<std::string, CheckpointPart>{{"x", scalar(3)}}}}};
}

inline std::shared_ptr<Bag> odd_names() {
  const auto odd = std::make_shared<Bag>();
  odd->track("a/b", scalar(1));
  odd->track("a.Sb", scalar(2));
  odd->track("c..d", scalar(3));
  return odd;
}

}  // namespace runnel::test
