// checkpoint_driver: our side of judge.py. `write DIR` trains the objects of every case, saves them as DIR/CASE/ours-1
// and goes on; `read DIR` restores what TensorFlow wrote as DIR/CASE/theirs-1, writes it again and goes on. Prints a
// line of JSON a case. `manage DIR` goes on with the folder DIR/manager that managers look after in turn.
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "runnel/keras/keras.h"
#include "runnel/keras/optimizers_legacy.h"
#include "runnel/keras/optimizers_recent.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint_manager.h"
#include "runnel/track/v1_saver.h"
#include "tests/support/tensorflow_objects.h"

namespace runnel::keras {
namespace {

using nlohmann::json;
using test::Objects;
using train::Checkpoint;

constexpr int64_t kBefore = 3, kAfter = 10;  // steps, before a checkpoint and after it

struct Case {
  std::string name;
  std::function<Objects()> build;
  std::vector<Shape> inputs = {};  // of cases that train
  bool indices = false;            // the inputs are numbers of rows
};

Tensor input_of(const Shape& shape, int64_t step, bool indices) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    values.push_back(indices ? static_cast<float>((i * 5 + step) % 7)
                             : static_cast<float>(static_cast<double>((i * 37 + 11 * step) % 101) / 101 - 0.5));
  }
  const Tensor all = Tensor::of(values, shape);
  return indices ? cast(all, int32) : all;
}

std::vector<double> train(const Case& c, const Objects& made, int64_t begin, int64_t steps) {
  std::vector<double> losses;
  for (int64_t step = begin; step < begin + steps; ++step) {
    std::vector<Nest> inputs;
    for (const Shape& shape : c.inputs) inputs.emplace_back(input_of(shape, step, c.indices));
    GradientTape tape;
    const Nest outputs = (*made.model)(inputs.size() == 1 ? inputs[0] : Nest::list(inputs), {.training = true});
    Tensor loss;
    for (const Tensor& y : nest::flatten(outputs)) {
      const Tensor part = reduce_mean(square(y - 0.3f));
      loss = loss.defined() ? loss + part : part;
    }
    made.optimizer->minimize(loss, made.model->trainable_variables(), tape);
    losses.push_back(static_cast<double>(loss.item<float>()));
  }
  return losses;
}

Objects training(std::shared_ptr<Model> model, OptimizerPtr optimizer) {
  return {.parts = {{"model", model}, {"optimizer", optimizer}}, .model = model, .optimizer = optimizer};
}

// The optimizer is a part of the model.
Objects compiled() {
  const std::shared_ptr<Model> model = test::sequential_model();
  model->compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
  model->fit(input_of({8, 4}, 0, false), input_of({8, 2}, 1, false),
             {.batch_size = 4, .epochs = 1, .verbose = 0, .shuffle = false});
  return {.parts = {{"model", model}}, .model = model, .optimizer = OptimizerPtr(model, &model->optimizer())};
}

OptimizerPtr adam() { return std::make_shared<optimizers::Adam>(0.01); }

Variable special_numbers() {
  constexpr float inf = std::numeric_limits<float>::infinity();
  return Variable(Tensor{std::nanf(""), inf, -inf, -0.0f, 1e-45f, 3.4e38f});
}

Objects of_every_dtype() {
  train::CheckpointParts parts;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < 6; ++i) numbers.push_back(i * 17 - 11);
  const Tensor all = Tensor::of(numbers, {2, 3});
  for (DType dtype : {float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
                      bool_, complex64, complex128}) {
    parts.emplace_back(dtype_name(dtype), Variable(cast(all, dtype)));
  }
  parts.emplace_back("special", special_numbers());
  const std::vector<std::string> texts{"", std::string("\0\xff", 2), std::string(130, 'x'), "\xc3\xa9"};
  parts.emplace_back("string", Variable(Tensor::of(texts, {2, 2})));
  parts.emplace_back("scalar_string", Variable(Tensor("hello")));
  parts.emplace_back("empty", Variable(zeros({0, 3})));
  parts.emplace_back("rank5", Variable(input_of({1, 2, 2, 2, 4}, 0, false)));
  return {.parts = parts};
}

Objects tables() {
  lookup::MutableHashTable words(DType::string, DType::int64, int64_t{-1});
  words.insert(Tensor{"a", "b", "c"}, Tensor::of(std::vector<int64_t>{1, 2, 3}));
  lookup::MutableHashTable vectors(DType::int64, DType::float32, Tensor{0.f, 0.f});
  vectors.insert(Tensor::of(std::vector<int64_t>{7, 5}), Tensor{{3.f, 4.f}, {1.f, 2.f}});
  lookup::DenseHashTable dense(DType::string, DType::int64, -1, "", "$", {.initial_num_buckets = 8});
  std::vector<std::string> keys;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < 10; ++i) {
    keys.push_back("key " + std::to_string(i));
    numbers.push_back(i);
  }
  dense.insert(Tensor::of(keys), Tensor::of(numbers));
  dense.remove(Tensor{"key 3"});
  lookup::DenseHashTable pairs(DType::int32, DType::float32, Tensor{0.f, 0.f}, Tensor{0, 0}, Tensor{0, -1},
                               {.initial_num_buckets = 4});
  pairs.insert(Tensor{{1, 2}, {2, 1}, {-3, 4}}, Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  return {.parts = {{"words", words}, {"vectors", vectors}, {"dense", dense}, {"pairs", pairs}}};
}

Objects generators() {
  return {.parts = {{"g", random::Generator::from_seed(5)},
                    {"h", random::Generator::from_state(Tensor::of(std::vector<int64_t>{5, 2, 3}))}}};
}

std::vector<Case> all_cases() {
  using namespace optimizers;
  const Shape rows{6, 4};
  std::vector<Case> cases{
      {"model_sequential",
       [] {
         Objects made = training(test::sequential_model(), adam());
         made.parts.emplace_back("step", Variable(int64_t{0}, {.name = "step"}));
         return made;
       },
       {rows}},
      {"model_conv_bn", [] { return training(test::conv_bn_model(), adam()); }, {{4, 6, 6, 2}}},
      {"model_embedding", [] { return training(test::embedding_model(), adam()); }, {{3, 5}}, true},
      {"model_shared_layer", [] { return training(test::shared_layer_model(), adam()); }, {{3, 3}, {3, 3}}},
      {"model_attention", [] { return training(test::attention_model(), adam()); }, {{2, 4, 6}}},
      {"model_nested", [] { return training(test::nested_model(), adam()); }, {rows}},
      {"model_recurrent", [] { return training(test::recurrent_model(), adam()); }, {{2, 4, 3}}},
      {"model_subclassed", [] { return training(test::subclassed_model(), adam()); }, {rows}},
      {"model_compiled", compiled, {rows}},
      {"containers", test::containers},
      {"dtypes", of_every_dtype},
      {"tables", tables},
      {"generators", generators},
      {"metrics", test::metric_objects},
      {"nested_checkpoints", test::nested_checkpoints},
      {"odd_names",
       [] {
         const auto odd = test::odd_names();
         return Objects{.parts = {{"o", odd}, {"p", odd}}};
       }},
  };
  const std::vector<std::pair<std::string, std::function<OptimizerPtr()>>> all_optimizers{
      {"sgd", [] { return std::make_shared<SGD>(0.1); }},
      {"sgd_momentum", [] { return std::make_shared<SGD>(SGDOptions{.learning_rate = 0.1, .momentum = 0.8}); }},
      {"sgd_nesterov",
       [] { return std::make_shared<SGD>(SGDOptions{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}); }},
      {"adam", adam},
      {"adam_amsgrad", [] { return std::make_shared<Adam>(AdamOptions{.learning_rate = 0.01, .amsgrad = true}); }},
      {"adam_ema_clip",
       [] {
         return std::make_shared<Adam>(
             AdamOptions{.learning_rate = 0.01, .global_clipnorm = 0.5, .use_ema = true, .ema_momentum = 0.9});
       }},
      {"adam_schedule",
       [] {
         return std::make_shared<Adam>(AdamOptions{
             .learning_rate =
                 schedules::ExponentialDecay({.initial_learning_rate = 0.1, .decay_steps = 2, .decay_rate = 0.5})});
       }},
      {"adamw", [] { return std::make_shared<AdamW>(AdamWOptions{.learning_rate = 0.01, .weight_decay = 0.02}); }},
      {"adagrad", [] { return std::make_shared<Adagrad>(0.1); }},
      {"rmsprop", [] { return std::make_shared<RMSprop>(0.01); }},
      {"rmsprop_centered",
       [] {
         return std::make_shared<RMSprop>(RMSpropOptions{.learning_rate = 0.01, .momentum = 0.5, .centered = true});
       }},
      {"adadelta", [] { return std::make_shared<Adadelta>(0.5); }},
      {"adamax", [] { return std::make_shared<Adamax>(0.01); }},
      {"nadam", [] { return std::make_shared<Nadam>(0.01); }},
      {"loss_scale", [] { return std::make_shared<mixed_precision::LossScaleOptimizer>(adam()); }},
      {"lion", [] { return std::make_shared<Lion>(0.001); }},
      {"adafactor", [] { return std::make_shared<Adafactor>(0.01); }},
      {"legacy_adam", [] { return std::make_shared<legacy::Adam>(0.01); }},
      {"legacy_sgd",
       [] { return std::make_shared<legacy::SGD>(legacy::SGDOptions{.learning_rate = 0.1, .momentum = 0.9}); }},
      {"legacy_rmsprop",
       [] {
         return std::make_shared<legacy::RMSprop>(
             legacy::RMSpropOptions{.learning_rate = 0.01, .momentum = 0.5, .centered = true});
       }},
      {"ftrl",
       [] { return std::make_shared<Ftrl>(FtrlOptions{.learning_rate = 0.1, .l1_regularization_strength = 0.01}); }}};
  for (const auto& [name, make] : all_optimizers) {
    cases.push_back({"optimizer_" + name, [make] { return training(test::sequential_model(), make()); }, {rows}});
  }
  return cases;
}

Objects build(const Case& c) {
  clear_session();
  utils::set_random_seed(5);
  return c.build();
}

json write(const Case& c, const std::string& dir) {
  const Objects made = build(c);
  if (made.model) train(c, made, 0, kBefore);
  made.checkpoint().save(dir + "/" + c.name + "/ours");
  json line{{"case", c.name}};
  if (made.model) line["losses"] = train(c, made, kBefore, kAfter);
  return line;
}

json read(const Case& c, const std::string& dir) {
  const std::string theirs = dir + "/" + c.name + "/theirs-1";
  json line{{"case", c.name}};
  try {
    const Objects made = build(c);
    if (made.model) made.optimizer->build(made.model->trainable_variables());
    Checkpoint checkpoint = made.checkpoint();
    checkpoint.restore(theirs).assert_consumed();
    checkpoint.write(dir + "/" + c.name + "/back");
    if (!made.model) return line;
    line["losses"] = train(c, made, kBefore, kAfter);
    // Once more with the slots of the optimizer made by its first step: their values wait for them.
    const Objects later = build(c);
    const train::RestoreStatus status = later.checkpoint().restore(theirs);
    line["delayed"] = train(c, later, kBefore, kAfter);
    status.assert_consumed();
  } catch (const Error& error) {
    line["error"] = error.what();
  }
  return line;
}

void print(const json& line) { std::printf("%s\n", line.dump(-1, ' ', false, json::error_handler_t::replace).c_str()); }

// A session of TensorFlow 1: values by the names of variables, one of them in parts.
json saver(const std::string& dir, bool writes) {
  namespace v1 = compat::v1;
  const std::string folder = dir + "/v1_saver/";
  json line{{"case", "v1_saver"}};
  try {
    const v1::Graph graph;
    const v1::Graph::Scope scope = graph.as_default();
    v1::get_variable("layer/w", {4, 2});
    v1::get_variable("step", {}, {.dtype = int64});
    v1::get_variable("parts", {6, 2}, {}, v1::fixed_size_partitioner(3));
    v1::train::Saver saver;
    v1::Session session(graph);
    if (writes) {
      session.run(v1::global_variables_initializer());
      saver.save(session, folder + "ours", 1);
    } else {
      saver.restore(session, folder + "theirs-1");
      saver.save(session, folder + "back");
    }
  } catch (const Error& error) {
    line["error"] = error.what();
  }
  return line;
}

// What the latest checkpoint of the folder has; then saves four more.
json manage(const std::string& dir) {
  json line{{"case", "manager"}};
  try {
    const Variable v(0.f);
    Checkpoint checkpoint({{"v", v}});
    train::CheckpointManager manager(checkpoint, dir + "/manager", 3);
    manager.restore_or_initialize();
    line["restored"] = {v.value().item<float>(), checkpoint.save_counter().value().item<int64_t>()};
    for (int i = 0; i < 4; ++i) {
      v.assign_add(1.f);
      manager.save({}, {.options = {.experimental_enable_async_checkpoint = true}});
    }
    manager.sync();
  } catch (const Error& error) {
    line["error"] = error.what();
  }
  return line;
}

int run(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  if (what != "write" && what != "read" && what != "manage") {
    std::fprintf(stderr, "usage: checkpoint_driver write|read|manage DIR\n");
    return 2;
  }
  if (what == "manage") {
    print(manage(argv[2]));
    return 0;
  }
  const bool writes = what == "write";
  for (const Case& c : all_cases()) {
    const json line = writes ? write(c, argv[2]) : read(c, argv[2]);
    print(line);
  }
  print(saver(argv[2], writes));
  return 0;
}

}  // namespace
}  // namespace runnel::keras

int main(int argc, char** argv) { return runnel::keras::run(argc, argv); }
