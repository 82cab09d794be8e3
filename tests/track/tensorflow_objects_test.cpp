// Objects as TensorFlow 2.15 had them when it wrote the checkpoints of the fixtures: their graphs equal TensorFlow's
// (nodes, edges, keys, dtypes, shapes), its files restore into them, and what we write of them are the same files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "runnel/base/sha256.h"
#include "runnel/keras/keras.h"
#include "runnel/keras/optimizers_legacy.h"
#include "runnel/keras/optimizers_recent.h"
#include "runnel/runnel.h"
#include "runnel/tensor/object_graph.h"
#include "runnel/track/checkpoint.h"
#include "runnel/track/foreign_iterator.h"
#include "runnel/track/object_graph_bytes.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensorflow_objects.h"

namespace runnel::keras {
namespace {

using nlohmann::json;
using namespace test;  // NOLINT: the objects

// What is compared of a node.
struct GraphNode {
  std::vector<std::pair<std::string, size_t>> children;
  std::vector<std::vector<std::string>> attributes;  // name, full name, key
  std::vector<std::tuple<size_t, std::string, size_t>> slots;
  bool has_values = false;
  bool operator==(const GraphNode&) const = default;
};
using NodeList = std::vector<GraphNode>;
using Entries = std::map<std::string, std::string>;  // key: "float32[2,3] SHA256"

std::ostream& operator<<(std::ostream& out, const GraphNode& node) {
  for (const auto& [name, id] : node.children) out << name << ":" << id << " ";
  for (const auto& attribute : node.attributes) out << testing::PrintToString(attribute);
  for (const auto& slot : node.slots) out << testing::PrintToString(slot);
  return out << (node.has_values ? "" : " (no values)");
}

// Of the elements; of strings with their lengths before them, but of a scalar, as the fixtures have it.
std::string sha_of(const Tensor& tensor) {
  std::string bytes(static_cast<const char*>(tensor.raw()), is_plain(tensor.dtype()) ? tensor.num_bytes() : 0);
  for (int64_t i = 0; tensor.dtype() == DType::string && i < tensor.num_elements(); ++i) {
    const std::string_view text = tensor.data<Bytes>()[i].view();
    const uint64_t size = text.size();
    if (tensor.rank() > 0) bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes.append(text);
  }
  return sha256_hex(as_bytes(bytes));
}

std::string entry_text(const Tensor& tensor) {
  return dtype_name(tensor.dtype()) + tensor.shape().str() + " " + sha_of(tensor);
}

// What TensorFlow says of one of its checkpoints.
struct Reference {
  explicit Reference(const std::string& folder, const std::string& name = "ckpt-1")
      : prefix((test::fixtures() / "tf215" / "checkpoints" / folder / name).string()) {
    all = json::parse(test::read_bytes(test::fixtures() / "tf215" / "checkpoints" / folder / "expected.json"));
    for (const json& each : all["checkpoints"]) {
      if (each["prefix"] == name) checkpoint = each;
    }
  }
  NodeList graph() const {
    const json& nodes = checkpoint["object_graph"];
    std::vector<size_t> order{0};
    std::map<size_t, size_t> id_of{{0, 0}};
    NodeList graph;
    const auto meet = [&](size_t id) {
      if (id_of.try_emplace(id, order.size()).second) order.push_back(id);
      return id_of[id];
    };
    for (size_t i = 0; i < order.size(); ++i) {  // NOLINT(modernize-loop-convert): `order` grows meanwhile
      const json& node = nodes[order[i]];
      GraphNode& made = graph.emplace_back();
      for (const json& child : node["children"]) {
        made.children.emplace_back(child[0], meet(child[1]));
      }
      for (const json& a : node.value("attributes", json::array())) {
        made.attributes.push_back({a["name"], a["full_name"], a["checkpoint_key"]});
      }
      made.has_values = node.value("has_checkpoint_values", false);
    }
    for (size_t i = 0; i < order.size(); ++i) {  // slots have no edges: they are the last nodes
      for (const json& slot : nodes[order[i]].value("slot_variables", json::array())) {
        const size_t id = slot["slot_variable_node_id"];
        const size_t place = meet(id);
        graph[i].slots.emplace_back(meet(slot["original_variable_node_id"]), slot["slot_name"], place);
        if (place < graph.size()) continue;
        GraphNode& made = graph.emplace_back();
        for (const json& a : nodes[id]["attributes"]) {
          made.attributes.push_back({a["name"], a["full_name"], a["checkpoint_key"]});
        }
        made.has_values = nodes[id].value("has_checkpoint_values", false);
      }
    }
    return graph;
  }
  Entries entries() const {
    Entries entries;
    for (const auto& [key, entry] : checkpoint["entries"].items()) {
      const Shape shape(entry["shape"].get<std::vector<int64_t>>());
      // The state of iterators has another form than TensorFlow's.
      entries[key] = key.ends_with("ITERATOR_STATE")
                         ? "iterator"
                         : entry["dtype"].get<std::string>() + shape.str() + " " + entry["sha256"].get<std::string>();
    }
    return entries;
  }
  std::string prefix;
  json all, checkpoint;
};

NodeList graph_of(const ObjectGraph& of) {
  NodeList graph;
  for (const ObjectGraph::Node& node : of.nodes) {
    GraphNode& made = graph.emplace_back();
    for (const auto& child : node.children) made.children.emplace_back(child.name, child.node);
    for (const auto& a : node.attributes) {
      made.attributes.push_back({a.value.name, a.value.full_name, a.checkpoint_key});
    }
    for (const auto& s : node.slot_variables) made.slots.emplace_back(s.variable, s.name, s.slot);
    made.has_values = node.has_checkpoint_values;
  }
  return graph;
}

Objects variables_of_every_type() {
  const Reference reference("dtypes");
  CheckpointParts parts;
  for (const json& child : reference.checkpoint["object_graph"][0]["children"]) {
    const std::string name = child[0];
    if (name == "save_counter") continue;
    const json& entry = reference.checkpoint["entries"][name + "/.ATTRIBUTES/VARIABLE_VALUE"];
    const DType dtype = dtype_from_name(entry["dtype"].get<std::string>());
    const Shape shape(entry["shape"].get<std::vector<int64_t>>());
    parts.emplace_back(name, Variable(dtype == DType::string ? Tensor::empty(dtype, shape) : zeros(shape, dtype)));
  }
  return {.parts = parts, .one_by_one = true};
}

Objects table_objects() {
  return {.parts = {{"words", lookup::MutableHashTable(DType::string, DType::int64, -1)},
                    {"dense", lookup::DenseHashTable(DType::int64, DType::int64, -1, -2, -3)},
                    {"vectors", lookup::MutableHashTable(DType::int64, DType::float32, Tensor{0.f, 0.f})}}};
}

Objects training_objects(const CheckpointPart& iterator) {
  const auto net = conv_bn_model();
  const auto adam = std::make_shared<optimizers::Adam>(0.01);
  adam->build(net->trainable_variables());
  return {
      .parts = {
          {"iterator", iterator}, {"net", net}, {"optimizer", adam}, {"step", Variable(int64_t{0}, {.name = "step"})}}};
}

struct Case {
  std::string folder;
  std::function<Objects()> build;
  std::string name = "ckpt-1";
  bool has_iterator = false;
  std::string variation = {};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.folder << "/" << c.name; }

template <class T, class... Args>
std::function<Objects()> trained_with(Args... args) {
  return [args...] { return trained_model(std::make_shared<T>(args...)); };
}

std::vector<Case> all_cases() {
  using namespace optimizers;
  std::vector<Case> cases{
      {"model_sequential", [] { return of_model(sequential_model()); }},
      {"model_conv_bn", [] { return of_model(conv_bn_model()); }},
      {"model_embedding", [] { return of_model(embedding_model()); }},
      {"model_functional_shared", [] { return of_model(shared_layer_model()); }},
      {"model_attention", [] { return of_model(attention_model()); }},
      {"model_nested", [] { return of_model(nested_model()); }},
      {"model_recurrent", [] { return of_model(recurrent_model()); }},
      {"model_subclassed", [] { return of_model(subclassed_model()); }},
      {"model_compiled_fit", [] { return of_model(compiled_model()); }},
      {"optimizer_sgd", trained_with<SGD>(0.1)},
      {"optimizer_sgd_momentum", trained_with<SGD>(SGDOptions{.learning_rate = 0.1, .momentum = 0.8})},
      {"optimizer_sgd_nesterov",
       trained_with<SGD>(SGDOptions{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true})},
      {"optimizer_adam", trained_with<Adam>(0.01)},
      {"optimizer_adam_amsgrad", trained_with<Adam>(AdamOptions{.learning_rate = 0.01, .amsgrad = true})},
      {"optimizer_adam_ema_clip",
       trained_with<Adam>(
           AdamOptions{.learning_rate = 0.01, .global_clipnorm = 0.5, .use_ema = true, .ema_momentum = 0.9})},
      {"optimizer_adam_schedule",
       trained_with<Adam>(AdamOptions{.learning_rate = schedules::ExponentialDecay(
                                          {.initial_learning_rate = 0.1, .decay_steps = 2, .decay_rate = 0.5})})},
      {"optimizer_adamw", trained_with<AdamW>(0.01)},
      {"optimizer_adagrad", trained_with<Adagrad>(0.1)},
      {"optimizer_rmsprop", trained_with<RMSprop>(0.01)},
      {"optimizer_rmsprop_centered",
       trained_with<RMSprop>(RMSpropOptions{.learning_rate = 0.01, .momentum = 0.5, .centered = true})},
      {"optimizer_adadelta", trained_with<Adadelta>(0.5)},
      {"optimizer_adamax", trained_with<Adamax>(0.01)},
      {"optimizer_nadam", trained_with<Nadam>(0.01)},
      {"optimizer_ftrl", trained_with<Ftrl>(0.1)},
      {"optimizer_lion", trained_with<Lion>(0.01)},
      {"optimizer_adafactor", trained_with<Adafactor>(0.01)},
      {"optimizer_legacy_adam", trained_with<legacy::Adam>(0.01)},
      {"optimizer_legacy_sgd", trained_with<legacy::SGD>(legacy::SGDOptions{.learning_rate = 0.1, .momentum = 0.9})},
      {"optimizer_legacy_rmsprop",
       trained_with<legacy::RMSprop>(legacy::RMSpropOptions{.learning_rate = 0.01, .momentum = 0.5, .centered = true})},
      {"metrics", metric_objects},
      {"containers", containers},
      {"dtypes", variables_of_every_type},
      {"random_generator",
       [] {
         return Objects{.parts = {{"g", random::Generator::from_seed(1)}, {"h", random::Generator::from_seed(2)}}};
       }},
      {"lookup_tables", table_objects},
      {"root_and_links",
       [] {
         return Objects{.parts = {{"step", Variable(int32_t{0})}}, .root = sequential_model()};
       },
       "root-1"},
      {"root_and_links", nested_checkpoints, "nested-1"},
      {"root_and_links",
       [] {
         return Objects{.parts = {{"o", odd_names()}}};
       },
       "escape-1"},
      {"root_and_links",
       [] {
         const auto odd = odd_names();
         return Objects{.parts = {{"a", odd}, {"b", odd}}};
       },
       "alias-1"},
      {"two_devices",
       [] {
         return Objects{.parts = {{"v0", Variable(zeros({4}))}, {"v1", Variable(zeros({4}))}}};
       },
       "one-1"},
      {"two_devices",
       [] {
         return Objects{.parts = {{"v0", Variable(zeros({4}))}, {"v1", Variable(zeros({4}))}}};
       },
       "perdevice-2"},
  };
  for (const char* name : {"saved-1", "saved-2", "written_after"}) {
    cases.push_back({"write_vs_save", [] { return Objects{.parts = {{"v", Variable(zeros({2}))}}}; }, name});
  }
  for (const char* name : {"ckpt-3", "ckpt-4", "ckpt-5"}) {
    cases.push_back({"manager_keep3", [] { return Objects{.parts = {{"v", scalar(0)}}}; }, name});
  }
  for (const char* name : {"range-1", "batch_map-1", "shuffle-1", "shuffle_repeat-1"}) {
    cases.push_back(
        {"data_iterators",
         [] {
           return Objects{.parts = {{"it", data::range(20).make_iterator()}, {"step", Variable(int32_t{3})}}};
         },
         name, true});
  }
  for (const char* name : {"ckpt-1", "ckpt-2", "ckpt-3"}) {
    const auto theirs = [] { return training_objects(std::make_shared<train::ForeignIterator>()); };
    cases.push_back({"train_state", theirs, name, false, "_kept"});
    const auto ours = [] {
      return training_objects(
          data::from_tensor_slices(zeros({12, 6, 6, 2}), zeros({12}, DType::int64)).batch(4).repeat().make_iterator());
    };
    cases.push_back({"train_state", ours, name, true});
  }
  return cases;
}

class TensorFlowObjects : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    RUNNEL_REQUIRE_FIXTURES();
    clear_session();
    utils::set_random_seed(1);
  }
};

TEST_P(TensorFlowObjects, HaveTheSameGraph) {
  const Reference reference(GetParam().folder, GetParam().name);
  const Objects objects = GetParam().build();
  Checkpoint checkpoint = objects.checkpoint();
  if (GetParam().variation == "_kept") {
    checkpoint.restore(reference.prefix);  // without a state it cannot be saved
  } else {
    (void)checkpoint.save_counter();
  }
  const train::Snapshot snapshot = checkpoint.capture();
  const NodeList ours = graph_of(train::object_graph_from_bytes(snapshot.values.back().tensor.item<std::string>()));
  const NodeList theirs = reference.graph();
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(ours[i], theirs[i]) << "node " << i;
  if (!objects.model) return;
  std::vector<std::string> weights, wanted;
  for (const Variable& v : objects.model->weights()) weights.push_back(v.name() + ":0 " + v.shape().str());
  for (const json& w : reference.all["weight_names"]) {
    wanted.push_back(w[0].get<std::string>() + " " + Shape(w[1].get<std::vector<int64_t>>()).str());
  }
  EXPECT_EQ(weights, wanted);
}

// The file of TensorFlow, restored and written again, is the same file; where an iterator of it has no counterpart
// here, keys and values are.
TEST_P(TensorFlowObjects, RestoreAndWriteTheSameFile) {
  const Case& c = GetParam();
  const Reference reference(c.folder, c.name);
  const Objects objects = c.build();
  Checkpoint checkpoint = objects.checkpoint();
  const train::RestoreStatus status = checkpoint.restore(reference.prefix);
  status.assert_existing_objects_matched().expect_partial();
  if (!c.has_iterator) status.assert_consumed();
  const test::TempDir dir;
  const std::string written = checkpoint.write(dir.file("again"));
  Entries ours;
  for (const train::CheckpointVariable& v : train::list_variables(written)) {
    if (v.name == train::kObjectGraphKey) continue;
    ours[v.name] = v.name.ends_with("ITERATOR_STATE") ? "iterator" : entry_text(train::load_variable(written, v.name));
  }
  EXPECT_EQ(ours, reference.entries());
  if (c.has_iterator || c.folder == "two_devices") return;
  for (const char* file : {".data-00000-of-00001", ".index"}) {
    EXPECT_EQ(test::read_bytes(written + file), test::read_bytes(reference.prefix + file)) << file;
  }
}

std::vector<double> flat_numbers(const json& value) {
  if (!value.is_array()) return {value.get<double>()};
  std::vector<double> all;
  for (const json& each : value) {
    for (const double number : flat_numbers(each)) all.push_back(number);
  }
  return all;
}

Tensor tensor_from(const json& value, DType dtype) {
  Dims dims;
  for (const json* at = &value; at->is_array(); at = &(*at)[0]) dims.push_back(static_cast<int64_t>(at->size()));
  return cast(reshape(Tensor::of<double>(flat_numbers(value)), Shape(dims)), dtype);
}

class TensorFlowModels : public TensorFlowObjects {};

TEST_P(TensorFlowModels, ComputeTheSameOutputs) {
  const Reference reference(GetParam().folder, GetParam().name);
  const Objects objects = GetParam().build();
  objects.checkpoint().restore(reference.prefix).expect_partial();
  const json &inputs = reference.all["inputs"], &outputs = reference.all["outputs"];
  Nest y;
  const DType dtype = GetParam().folder == "model_embedding" ? DType::int32 : DType::float32;
  if (GetParam().folder == "model_functional_shared") {
    y = (*objects.model)(Nest::list({tensor_from(inputs[0], dtype), tensor_from(inputs[1], dtype)}));
  } else {
    y = Nest((*objects.model)(tensor_from(inputs, dtype)));
  }
  std::vector<double> ours;
  for (const Tensor& each : nest::flatten(y)) {
    for (const float number : each.to_vector<float>()) ours.push_back(number);
  }
  EXPECT_THAT(ours, testing::Pointwise(testing::DoubleNear(2e-5), flat_numbers(outputs)));
}

// Three steps from the weights and with the data of the fixture.
void expect_same_training(const std::string& folder, Optimizer& optimizer) {
  SCOPED_TRACE(folder);
  clear_session();
  const json all = Reference(folder).all;
  const auto model = sequential_model();
  std::vector<Tensor> initial;
  for (const json& weight : all["initial_weights"]) initial.push_back(tensor_from(weight, DType::float32));
  model->set_weights(initial);
  const Tensor x = tensor_from(all["x"], DType::float32), y = tensor_from(all["y"], DType::float32);
  for (const json& wanted : all["losses"]) {
    GradientTape tape;
    const Tensor loss = reduce_mean(square((*model)(x)-y));
    optimizer.apply_gradients(zip(tape.gradient(loss, model->trainable_weights()), model->trainable_weights()));
    EXPECT_NEAR(loss.item<float>(), wanted.get<double>(), 1e-6);
  }
  const json& wanted = all["final_weights"];
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::vector<double> ours;
    for (const float number : model->get_weights()[i].to_vector<float>()) ours.push_back(number);
    EXPECT_THAT(ours, testing::Pointwise(testing::DoubleNear(1e-6), flat_numbers(wanted[i])));
  }
}

TEST(MeanTensors, AreTheMeanOfEveryElement) {
  metrics::MeanTensor mean;
  EXPECT_THROW((void)mean.result(), Error);
  mean.update_state(Tensor{1.f, 2.f});
  mean.update_state(Tensor{3.f, 6.f}, Tensor{1.f, 3.f});
  EXPECT_EQ(mean.result().to_vector<float>(), (std::vector<float>{2, 5}));
  EXPECT_THROW(mean.update_state(Tensor{1.f}), Error);
  mean.reset_state();
  EXPECT_EQ(mean.result().to_vector<float>(), (std::vector<float>{0, 0}));
  // The state of a checkpoint comes with the first values.
  const test::TempDir dir;
  mean.update_state(Tensor{4.f, 8.f});
  Checkpoint({{"mean", mean}}).write(dir.file("x"));
  metrics::MeanTensor fresh;
  Checkpoint checkpoint({{"mean", fresh}});
  const train::RestoreStatus status = checkpoint.read(dir.file("x"));
  fresh.update_state(Tensor{0.f, 0.f});
  status.assert_consumed();
  EXPECT_EQ(fresh.result().to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST(RecentOptimizers, TrainAsKerass) {
  RUNNEL_REQUIRE_FIXTURES();
  optimizers::Lion lion(0.01);
  expect_same_training("optimizer_lion", lion);
  optimizers::Adafactor adafactor(0.01);
  expect_same_training("optimizer_adafactor", adafactor);
  EXPECT_EQ(adafactor.variables().size(), 9U);
  EXPECT_EQ(optimizers::get("adafactor")->class_name(), "Adafactor");
  // Rows alone, and in a function.
  const Variable w(Tensor{{1.f, 2.f}, {3.f, 4.f}}, {.name = "w"});
  optimizers::Lion rows({.learning_rate = 0.5});
  const auto step = function([&] {
    rows.apply_gradients({{IndexedSlices{Tensor{{1.f, -1.f}}, Tensor{int64_t{1}}, Tensor{int64_t{2}, int64_t{2}}}, w}});
    return Tensor(w);
  });
  EXPECT_EQ(step().to_vector<float>(), (std::vector<float>{1, 2, 2.5, 4.5}));
}

TEST(LegacyOptimizers, TrainAsKerass) {
  RUNNEL_REQUIRE_FIXTURES();
  optimizers::legacy::Adam adam(0.01);
  expect_same_training("optimizer_legacy_adam", adam);
  optimizers::legacy::SGD sgd({.learning_rate = 0.1, .momentum = 0.9});
  expect_same_training("optimizer_legacy_sgd", sgd);
  optimizers::legacy::RMSprop rmsprop({.learning_rate = 0.01, .momentum = 0.5, .centered = true});
  expect_same_training("optimizer_legacy_rmsprop", rmsprop);
  EXPECT_EQ(adam.variables().size(), 9U);
  EXPECT_EQ(adam.variables()[1].name(), "Adam/first/kernel/m");
  EXPECT_EQ(adam.get_config()["amsgrad"].as_bool(), false);
}

// The settings, the number of the step and the slots come when the optimizer is first used.
TEST(LegacyOptimizers, TakeTheirStateAtTheFirstStep) {
  const test::TempDir dir;
  const Variable w(Tensor{1.f, 2.f}, {.name = "w"});
  optimizers::legacy::SGD sgd({.learning_rate = 0.5, .momentum = 0.5, .decay = 0.1});
  sgd.apply_gradients({{Tensor{1.f, 1.f}, w}});
  const std::string path = Checkpoint({{"w", w}, {"optimizer", sgd}}).write(dir.file("x"));
  sgd.apply_gradients({{Tensor{1.f, 1.f}, w}});
  const Variable again(Tensor{0.f, 0.f}, {.name = "w"});
  optimizers::legacy::SGD fresh({.learning_rate = 9, .momentum = 0.1});
  Checkpoint checkpoint({{"w", again}, {"optimizer", fresh}});
  const train::RestoreStatus status = checkpoint.read(path);
  fresh.apply_gradients({{Tensor{1.f, 1.f}, again}});
  status.assert_consumed();
  EXPECT_EQ(again.value().to_vector<float>(), w.value().to_vector<float>());
  EXPECT_EQ(fresh.iterations().value().item<int64_t>(), 2);
  EXPECT_EQ(fresh.hyper("decay").value().item<float>(), 0.1F);
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.folder + "_" + info.param.name + info.param.variation;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

std::vector<Case> model_cases() {
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [](const Case& c) { return !c.folder.starts_with("model_"); });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TensorFlowObjects, testing::ValuesIn(all_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Fixtures, TensorFlowModels, testing::ValuesIn(model_cases()), test_name);

}  // namespace
}  // namespace runnel::keras
