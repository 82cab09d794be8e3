// What users write: settings by name. Compiled with all warnings as errors, which members without a default would give.
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"

using namespace runnel;

Tensor hits(const Tensor& y_true, const Tensor& y_pred) {
  return keras::metrics::sparse_categorical_accuracy(y_true, y_pred);
}

void settings() {
  keras::optimizers::Adam adam({.learning_rate = 0.001});
  keras::models::Sequential model({
      keras::layers::Conv2D({.filters = 8, .kernel_size = 3, .activation = "relu", .input_shape = {28, 28, 1}}),
      keras::layers::MaxPooling2D({.pool_size = 2}),
      keras::layers::BatchNormalization({.momentum = 0.9}),
      keras::layers::Flatten(),
      keras::layers::Dropout({.rate = 0.2}),
      keras::layers::Dense({.units = 10, .activation = "softmax"}),
  });
  model.compile({.optimizer = adam,
                 .loss = keras::losses::sparse_categorical_crossentropy,
                 .metrics = {"accuracy", keras::named<hits>, keras::metrics::SparseTopKCategoricalAccuracy({.k = 3})}});
  const Tensor x = zeros({4, 28, 28, 1}), y = zeros({4}, int32);
  const auto dataset = data::from_tensor_slices(x, y)
                           .shuffle(4, {.seed = 1})
                           .map(
                               [](Tensor a, Tensor b) {
                                 return std::tuple{a, b};
                               },
                               {.num_parallel_calls = 2})
                           .batch(2, {.drop_remainder = true});
  model.fit(dataset, {.epochs = 1, .verbose = 0, .callbacks = {keras::callbacks::EarlyStopping({.patience = 2})}});
  model.evaluate(dataset, {.verbose = 0});
  model.predict(dataset, {.verbose = 0});
  keras::layers::LSTM lstm({.units = 3, .return_sequences = true});
  keras::layers::MultiHeadAttention attention({.num_heads = 2, .key_dim = 2});
  const Tensor sequence = lstm(zeros({2, 3, 4}), {.training = true});
  attention(sequence, sequence, {.use_causal_mask = true});
  const Variable v(0.0f, {.name = "v", .trainable = false});
  const auto twice = function([](const Tensor& t) { return t * 2; }, {.name = "twice"});
  twice(v.value());
}
