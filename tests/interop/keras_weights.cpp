// usage: keras_weights FOLDER    writes weights of several models in all formats, for keras_weights.py
// FOLDER/KIND has legacy.h5, new.weights.h5, a checkpoint `tf`, and data.npz with inputs and predictions.
#include <iostream>
#include <map>
#include <string>

#include "tests/keras/fixture_models.h"

namespace {

using namespace runnel;  // NOLINT: a program

// Attributes whose names come before and after `layers`, in a layer and in a model.
struct Block : keras::Layer {
  keras::Dense inner{this, "inner", 4};
  keras::Dense zeta{this, "zeta", 4};
  Tensor call(const Tensor& x, const keras::CallArgs&) override { return zeta(inner(x)); }
};
struct Attributes : keras::Model {
  keras::Dense alpha{this, "alpha", 4};
  Block output_block{};
  std::vector<std::shared_ptr<Block>> blocks{std::make_shared<Block>(), std::make_shared<Block>()};
  keras::TimeDistributed timed{this, "timed", {.layer = keras::Dense(4)}};
  Attributes() {
    track("output_block", output_block);
    const auto stack = std::make_shared<TrackableList>();
    for (const auto& block : blocks) stack->append(block);
    track("stack", stack);
  }
  Tensor call(const Tensor& x, const keras::CallArgs&) override {
    Tensor y = output_block(alpha(x));
    for (const auto& block : blocks) y = (*block)(y);
    return timed(expand_dims(y, 1));
  }
};

keras::ModelPtr model_of(const std::string& kind) {
  if (kind != "attributes") return test::fixture_model(kind, 4);
  const auto model = std::make_shared<Attributes>();
  (*model)(zeros({1, 4}));
  return model;
}

Nest inputs_of(const std::string& kind) {
  const auto uniform = [](const Shape& shape) { return random::uniform(shape, -1, 1); };
  if (kind == "functional_shared") return Nest::list({uniform({3, 3}), uniform({3, 3})});
  if (kind == "embedding") return random::uniform({3, 5}, 0, 7, int32);
  if (kind == "conv_bn") return uniform({3, 6, 6, 2});
  if (kind == "recurrent") return uniform({3, 4, 3});
  if (kind == "attention") return uniform({3, 4, 6});
  return uniform({3, 4});
}

// A few steps of training, so that there is something in the optimizer and in metrics, and in moving averages.
void train(keras::Model& model, const Nest& inputs) {
  model.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
  model.fit(inputs, nest::map_structure([](const Tensor& t) { return random::uniform(t.shape()); }, model(inputs)),
            {.batch_size = 1, .epochs = 2, .verbose = 0});
}

void write_kind(const std::string& folder, const std::string& kind) {
  const keras::ModelPtr model = model_of(kind);
  const Nest inputs = inputs_of(kind);
  if (kind != "sequential") train(*model, inputs);
  std::map<std::string, Tensor> arrays;
  int number = 0;
  for (const Tensor& t : nest::flatten(inputs)) arrays["x" + std::to_string(number++)] = t;
  number = 0;
  for (const Tensor& t : nest::flatten((*model)(inputs, {.training = false}))) {
    arrays["y" + std::to_string(number++)] = t;
  }
  const std::string place = join_path(folder, kind);
  Env::posix().create_dirs(place);
  keras::utils::save_npz(join_path(place, "data.npz"), arrays, false);
  model->save_weights(join_path(place, "legacy.h5"));
  model->save_weights(join_path(place, "new.weights.h5"));
  model->save_weights(join_path(place, "tf"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  keras::utils::set_random_seed(1);
  for (const std::string& kind : test::fixture_kinds()) write_kind(argv[1], kind);
  write_kind(argv[1], "attributes");
  return 0;
}
