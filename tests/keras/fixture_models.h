#pragma once

// The models that TensorFlow's files in fixtures/tf215 were written by, built here.
#include <memory>
#include <string>
#include <vector>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

namespace runnel::test {

struct SubclassedModel : keras::Model {
  explicit SubclassedModel(int64_t n) : Model({.name = "subclassed"}) {
    using keras::Dense;
    const auto blocks = std::make_shared<TrackableList>();
    for (const char* activation : {"relu", "linear"}) {
      parts.push_back(std::make_shared<Dense>(keras::DenseOptions{.units = n, .activation = activation}));
      blocks->append(parts.back());
    }
    track("blocks", blocks);
    const auto heads = std::make_shared<TrackableDict>();
    for (const int64_t units : {1, 2}) {
      parts.push_back(std::make_shared<Dense>(keras::DenseOptions{.units = units}));
      heads->set(units == 1 ? "a" : "b", parts.back());
    }
    track("heads", heads);
    track("scale", scale);
  }
  Tensor call(const Tensor& input, const keras::CallArgs&) override {
    const Tensor x = (*parts[1])((*parts[0])(input));
    return concat({(*parts[2])(x), (*parts[3])(x)}, -1) * scale;
  }
  std::string class_name() const override { return "Subclassed"; }
  std::vector<std::shared_ptr<keras::Dense>> parts;
  Variable scale{Tensor(1.5f), {.name = "scale"}};
};

inline const std::vector<std::string>& fixture_kinds() {
  static const std::vector<std::string> kinds{"sequential",   "functional_shared", "subclassed",
                                              "compiled_fit", "conv_bn",           "recurrent",
                                              "embedding",    "attention",         "nested"};
  return kinds;
}

inline keras::ModelPtr fixture_functional_shared(int64_t n) {
  using namespace keras;  // NOLINT: the names of a model
  const Tensor a = Input({3}, {.name = "left"}), b = Input({3}, {.name = "right"});
  const auto shared = make<Dense>({.units = n, .activation = "tanh", .name = "shared"});
  const Tensor x = Concatenate({.name = "join"})(Nest::list({shared(a), shared(b)})).leaf();
  const Nest outputs = Nest::list(
      {Dense({.units = 2, .name = "main"})(x), Dense({.units = 1, .activation = "sigmoid", .name = "aux"})(x)});
  return std::make_shared<Model>(Nest::list({a, b}), outputs, LayerOptions{.name = "two_in"});
}

inline keras::ModelPtr fixture_attention(int64_t n) {
  using namespace keras;  // NOLINT
  const Tensor i = Input({4, 6});
  const Tensor y = MultiHeadAttention({.num_heads = 2, .key_dim = n, .name = "mha"})(Nest::list({i, i})).leaf();
  const Tensor normal = LayerNormalization({.name = "ln"})(Add()(Nest::list({i, y})).leaf());
  return std::make_shared<Model>(i, Dense({.units = 2})(normal));
}

inline keras::ModelPtr fixture_nested(int64_t n) {
  using namespace keras;  // NOLINT
  using Layers = std::initializer_list<LayerArg>;
  const auto inner = std::make_shared<Sequential>(Layers{Input({4}), Dense({.units = n}), Dense({.units = 3})},
                                                  LayerOptions{.name = "inner"});
  const auto middle = std::make_shared<Sequential>(Layers{inner, Dense({.units = 2})}, LayerOptions{.name = "middle"});
  const Tensor i = Input({4});
  return std::make_shared<Model>(i, Dense({.units = 1, .name = "outer_dense"})((*middle)(i)),
                                 LayerOptions{.name = "outer"});
}

inline keras::ModelPtr fixture_recurrent(int64_t n) {
  using namespace keras;  // NOLINT
  const Tensor i = Input({4, 3});
  Tensor x = Bidirectional({.layer = LSTM({.units = n, .return_sequences = true})})(i);
  x = GRU({.units = n, .return_sequences = true})(x);
  x = RNN({.cell = {make<LSTMCell>({.units = 2}), make<GRUCell>({.units = 3})}})(x);
  return std::make_shared<Model>(i, x);
}

// Of one of fixture_kinds(), with the names that Keras gives in a fresh program.
inline keras::ModelPtr fixture_model(const std::string& kind, int64_t n) {
  using namespace keras;  // NOLINT
  using Layers = std::initializer_list<LayerArg>;
  clear_session();
  if (kind == "functional_shared") return fixture_functional_shared(n);
  if (kind == "attention") return fixture_attention(n);
  if (kind == "nested") return fixture_nested(n);
  if (kind == "recurrent") return fixture_recurrent(n);
  if (kind == "conv_bn") {
    return std::make_shared<Sequential>(
        Layers{Input({6, 6, 2}), Conv2D({.filters = n, .kernel_size = {3, 3}, .padding = "same", .activation = "relu"}),
               BatchNormalization(), MaxPooling2D(), Flatten(), Dense({.units = 3, .activation = "softmax"})});
  }
  if (kind == "embedding") {
    return std::make_shared<Sequential>(Layers{Input({5}, {.dtype = DType::int32}),
                                               Embedding({.input_dim = 7, .output_dim = n, .mask_zero = true}),
                                               GlobalAveragePooling1D(), Dense({.units = 1})});
  }
  if (kind == "subclassed") {
    const auto model = std::make_shared<SubclassedModel>(n);
    (*model)(zeros({1, 4}));
    return model;
  }
  return std::make_shared<Sequential>(Layers{Input({4}), Dense({.units = n, .activation = "relu", .name = "first"}),
                                             Dense({.units = 2, .name = "second"})});
}

}  // namespace runnel::test
