// The object graphs of models, optimizers and the like against those that TensorFlow 2.15 wrote into checkpoints:
// nodes, edges, keys, dtypes and shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "runnel/tensor/object_graph.h"
#include "tests/support/fixtures.h"

namespace runnel::keras {
namespace {

using nlohmann::json;

// tf.train.Checkpoint(name=part, ...): edges in the order of their names, then save_counter.
struct CheckpointRoot : Trackable {
  Variable save_counter{int64_t{1}, {.name = "save_counter", .trainable = false}};
  CheckpointRoot& counted() {
    track("save_counter", save_counter);
    return *this;
  }
};

// What is compared of a node.
struct GraphNode {
  std::vector<std::pair<std::string, size_t>> children;
  std::vector<std::vector<std::string>> attributes;  // name, full name, key
  std::vector<std::tuple<size_t, std::string, size_t>> slots;
  bool has_values = false;
  bool operator==(const GraphNode&) const = default;
};
using NodeList = std::vector<GraphNode>;
using Entries = std::map<std::string, std::string>;  // key: "float32 [2, 3]"

std::ostream& operator<<(std::ostream& out, const GraphNode& node) {
  for (const auto& [name, id] : node.children) out << name << ":" << id << " ";
  for (const auto& attribute : node.attributes) out << testing::PrintToString(attribute);
  for (const auto& slot : node.slots) out << testing::PrintToString(slot);
  return out << (node.has_values ? "" : " (no values)");
}

std::string shape_text(const Shape& shape) { return shape.str(); }

struct Reference {
  explicit Reference(const std::string& name, size_t number = 0) {
    const auto file = test::fixtures() / "tf215" / "checkpoints" / name / "expected.json";
    all = json::parse(test::read_bytes(file));
    checkpoint = all["checkpoints"][number];
  }
  // Without what can be reached only over edges in `left_out`, which are given as "node/edge" or "edge".
  NodeList graph(const std::set<std::string>& left_out = {}) const {
    const json& nodes = checkpoint["object_graph"];
    std::vector<size_t> order{0};
    std::map<size_t, size_t> id_of{{0, 0}};
    std::map<size_t, std::string> name_of;
    NodeList graph;
    const auto meet = [&](size_t id) {
      if (id_of.try_emplace(id, order.size()).second) order.push_back(id);
      return id_of[id];
    };
    for (size_t i = 0; i < order.size(); ++i) {
      const json& node = nodes[order[i]];
      GraphNode& made = graph.emplace_back();
      for (const json& child : node["children"]) {
        const std::string name = child[0];
        if (left_out.contains(name) || left_out.contains(name_of[order[i]] + "/" + name)) continue;
        name_of.try_emplace(child[1].get<size_t>(), name);
        made.children.emplace_back(name, meet(child[1]));
      }
      for (const json& a : node.value("attributes", json::array())) {
        made.attributes.push_back({a["name"], a["full_name"], a["checkpoint_key"]});
      }
      made.has_values = node.value("has_checkpoint_values", false);
    }
    return graph;
  }
  Entries entries(const std::set<std::string>& left_out = {}) const {
    Entries entries;
    for (const auto& [key, entry] : checkpoint["entries"].items()) {
      if (key == "_CHECKPOINTABLE_OBJECT_GRAPH") continue;
      const bool skipped = std::any_of(left_out.begin(), left_out.end(),
                                       [&](const std::string& part) { return key.find(part + "/") == 0; });
      if (skipped) continue;
      // Iterators are kept in another form than TensorFlow's.
      const bool iterator = key.ends_with("ITERATOR_STATE");
      std::vector<int64_t> dims = entry["shape"];
      entries[key] = iterator ? "iterator" : entry["dtype"].get<std::string>() + shape_text(Shape(dims));
    }
    return entries;
  }
  json all, checkpoint;
};

NodeList graph_of(Trackable& root) {
  NodeList graph;
  for (const ObjectGraph::Node& node : ObjectGraph::of(root).nodes) {
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

Entries entries_of(Trackable& root) {
  Entries entries;
  for (const ObjectGraph::Node& node : ObjectGraph::of(root).nodes) {
    for (const auto& a : node.attributes) {
      const std::vector<Tensor> tensors = a.value.get();
      EXPECT_EQ(tensors.size(), a.value.suffixes.size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        entries[a.checkpoint_key + a.value.suffixes[i]] =
            a.value.name == "ITERATOR" ? "iterator" : dtype_name(tensors[i].dtype()) + shape_text(tensors[i].shape());
      }
    }
  }
  return entries;
}

void expect_same(Trackable& root, const Reference& reference, const std::set<std::string>& left_out = {}) {
  EXPECT_EQ(entries_of(root), reference.entries(left_out));
  const NodeList ours = graph_of(root), theirs = reference.graph(left_out);
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(ours[i], theirs[i]) << "node " << i;
}

void expect_model(const std::string& name, Model& model, const std::set<std::string>& left_out = {}) {
  const Reference reference(name);
  CheckpointRoot root;
  root.track("model", model);
  expect_same(root.counted(), reference, left_out);
  std::vector<std::string> weights, wanted;
  for (const Variable& v : model.weights()) weights.push_back(v.name() + ":0 " + shape_text(v.shape()));
  for (const json& w : reference.all["weight_names"]) {
    wanted.push_back(w[0].get<std::string>() + " " + shape_text(Shape(w[1].get<std::vector<int64_t>>())));
  }
  EXPECT_EQ(weights, wanted);
}

constexpr int64_t kSize = 4;

Sequential sequential_model() {
  Sequential model({Input({4})});
  model.add(Dense({.units = kSize, .activation = "relu", .name = "first"}));
  model.add(Dense({.units = 2, .name = "second"}));
  return model;
}

Sequential conv_bn_model() {
  return Sequential({Input({6, 6, 2}), Conv2D({.filters = kSize, .kernel_size = {3, 3}, .padding = "same"}),
                     BatchNormalization(), MaxPooling2D(), Flatten(), Dense({.units = 3, .activation = "softmax"})});
}

class ObjectGraphs : public testing::Test {
 protected:
  void SetUp() override {
    RUNNEL_REQUIRE_FIXTURES();
    clear_session();
  }
};

TEST_F(ObjectGraphs, OfSequentialModels) {
  Sequential plain = sequential_model();
  expect_model("model_sequential", plain);
  clear_session();
  Sequential conv = conv_bn_model();
  expect_model("model_conv_bn", conv);
  clear_session();
  Sequential embedding({Input({5}, {.dtype = DType::int32}),
                        Embedding({.input_dim = 7, .output_dim = kSize, .mask_zero = true}), GlobalAveragePooling1D(),
                        Dense({.units = 1})});
  expect_model("model_embedding", embedding);
}

TEST_F(ObjectGraphs, OfFunctionalModels) {
  const Tensor a = Input({3}, {.name = "left"}), b = Input({3}, {.name = "right"});
  const auto shared = make<Dense>({.units = kSize, .activation = "tanh", .name = "shared"});
  const Tensor x = Concatenate({.name = "join"})(Nest::list({shared(a), shared(b)})).leaf();
  Model model(Nest::list({a, b}), Nest::list({Dense({.units = 2, .name = "main"})(x),
                                              Dense({.units = 1, .activation = "sigmoid", .name = "aux"})(x)}));
  expect_model("model_functional_shared", model);

  clear_session();
  const Tensor i = Input({4, 6});
  const Tensor y = MultiHeadAttention({.num_heads = 2, .key_dim = kSize, .name = "mha"})(Nest::list({i, i})).leaf();
  const Tensor normal = LayerNormalization({.name = "ln"})(Add()(Nest::list({i, y})).leaf());
  Model attention(i, Dense({.units = 2})(normal));
  expect_model("model_attention", attention);
}

TEST_F(ObjectGraphs, OfNestedModels) {
  const auto inner = std::make_shared<Sequential>(
      std::initializer_list<LayerArg>{Input({4}), Dense({.units = kSize}), Dense({.units = 3})},
      LayerOptions{.name = "inner"});
  const auto middle = std::make_shared<Sequential>(std::initializer_list<LayerArg>{inner, Dense({.units = 2})},
                                                   LayerOptions{.name = "middle"});
  const Tensor i = Input({4});
  Model outer(i, Dense({.units = 1, .name = "outer_dense"})((*middle)(i)), {.name = "outer"});
  expect_model("model_nested", outer);
}

TEST_F(ObjectGraphs, OfRecurrentModels) {
  const Tensor i = Input({4, 3});
  Tensor x = Bidirectional({.layer = LSTM({.units = kSize, .return_sequences = true})})(i);
  x = GRU({.units = kSize, .return_sequences = true})(x);
  x = RNN({.cell = {make<LSTMCell>({.units = 2}), make<GRUCell>({.units = 3})}})(x);
  Model model(i, x);
  // Keras keeps a list in that list for a cell with several states; it has no values.
  expect_model("model_recurrent", model, {"state_spec/0"});
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

TEST_F(ObjectGraphs, OfModelsOfYourOwn) {
  Subclassed model;
  model(zeros({1, 4}));
  expect_model("model_subclassed", model);
  EXPECT_EQ(model.trainable_weights().size(), 9u);
}

TEST_F(ObjectGraphs, OfCompiledModels) {
  Sequential model = sequential_model();
  model.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
  model.fit(random::uniform({8, 4}), random::uniform({8, 2}), {.batch_size = 4, .epochs = 2, .verbose = 0});
  expect_model("model_compiled_fit", model);
}

// Not there: Lion and Adafactor (no such optimizer yet), legacy_adam, legacy_sgd and legacy_rmsprop (those of before
// Keras 2.11, whose state is in slot variables).
TEST_F(ObjectGraphs, OfOptimizers) {
  using namespace optimizers;
  const std::map<std::string, OptimizerPtr> all{
      {"sgd", std::make_shared<SGD>(0.1)},
      {"sgd_momentum", std::make_shared<SGD>(SGDOptions{.learning_rate = 0.1, .momentum = 0.8})},
      {"sgd_nesterov", std::make_shared<SGD>(SGDOptions{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true})},
      {"adam", std::make_shared<Adam>(0.01)},
      {"adam_amsgrad", std::make_shared<Adam>(AdamOptions{.learning_rate = 0.01, .amsgrad = true})},
      {"adam_ema_clip", std::make_shared<Adam>(AdamOptions{
                            .learning_rate = 0.01, .global_clipnorm = 0.5, .use_ema = true, .ema_momentum = 0.9})},
      {"adam_schedule",
       std::make_shared<Adam>(AdamOptions{.learning_rate = schedules::ExponentialDecay(
                                              {.initial_learning_rate = 0.1, .decay_steps = 2, .decay_rate = 0.5})})},
      {"adamw", std::make_shared<AdamW>(0.01)},
      {"adagrad", std::make_shared<Adagrad>(0.1)},
      {"rmsprop", std::make_shared<RMSprop>(0.01)},
      {"rmsprop_centered",
       std::make_shared<RMSprop>(RMSpropOptions{.learning_rate = 0.01, .momentum = 0.5, .centered = true})},
      {"adadelta", std::make_shared<Adadelta>(0.5)},
      {"adamax", std::make_shared<Adamax>(0.01)},
      {"nadam", std::make_shared<Nadam>(0.01)},
      {"ftrl", std::make_shared<Ftrl>(0.1)},
  };
  for (const auto& [name, optimizer] : all) {
    SCOPED_TRACE(name);
    Sequential model = sequential_model();
    optimizer->build(model.trainable_variables());
    CheckpointRoot root;
    root.track("model", model);
    root.track("optimizer", optimizer);
    expect_same(root.counted(), Reference("optimizer_" + name));
  }
}

// Not there: MeanTensor (no such metric yet).
TEST_F(ObjectGraphs, OfMetrics) {
  metrics::SparseCategoricalAccuracy acc;
  metrics::AUC auc({.num_thresholds = 5});
  metrics::Mean mean;
  metrics::MeanIoU miou(3);
  metrics::Precision prec;
  CheckpointRoot root;
  root.track("acc", acc);
  root.track("auc", auc);
  root.track("mean", mean);
  root.track("miou", miou);
  root.track("prec", prec);
  expect_same(root.counted(), Reference("metrics"), {"meantensor"});
}

TEST_F(ObjectGraphs, OfContainers) {
  const auto v = [](const Shape& shape) { return Variable(zeros(shape)); };
  CheckpointRoot root;
  struct Bag : Trackable {
  } bag;
  const auto items = std::make_shared<TrackableList>(), deep_list = std::make_shared<TrackableList>();
  const auto deep = std::make_shared<TrackableDict>();
  items->append(v({2}));
  items->append(v({4, 2}));
  items->append(deep_list);
  deep_list->append(v({1}));
  deep_list->append(deep);
  deep->set("deep", v({3}));
  bag.track("items", items);
  const auto named = std::make_shared<TrackableDict>();
  for (const auto& [key, size] :
       std::vector<std::pair<std::string, int64_t>>{{"b", 2}, {"a", 1}, {"with/slash", 2}, {"dot.name", 1}, {"", 1}}) {
    named->set(key, v({size}));
  }
  bag.track("named", named);
  const auto pair = std::make_shared<TrackableList>(), second = std::make_shared<TrackableList>();
  pair->append(v({1}));
  pair->append(second);
  second->append(v({2}));
  second->append(v({3}));
  bag.track("pair", pair);
  const Variable first = v({2, 2});
  bag.track("first", first);
  bag.track("second", first);
  const auto mixed = std::make_shared<TrackableList>();
  mixed->track("1", v({1}));  // [1, variable, "text", None]
  bag.track("mixed", mixed);
  bag.track("_private", v({1}));
  bag.track("with_underscore__", v({1}));
  root.track("again", items);
  root.track("bag", bag);
  expect_same(root.counted(), Reference("containers"));
}

TEST_F(ObjectGraphs, OfRootsAndLinks) {
  const auto scalar = [](float value) { return Variable(Tensor(value)); };
  Sequential model = sequential_model();
  const Variable counter(int64_t{1}, {.name = "save_counter"});
  model.track("root", model);
  model.track("step", Variable(int32_t{4}));
  model.track("save_counter", counter);
  expect_same(model, Reference("root_and_links", 0));
  EXPECT_EQ(model.layers().size(), 2u);

  struct Odd : Trackable {
  } odd;
  odd.track("a/b", scalar(1));
  odd.track("a.Sb", scalar(2));
  odd.track("c..d", scalar(3));
  CheckpointRoot escape, alias;
  escape.track("o", odd);
  expect_same(escape.counted(), Reference("root_and_links", 2));
  alias.track("a", odd);
  alias.track("b", odd);
  expect_same(alias.counted(), Reference("root_and_links", 3));
}

TEST_F(ObjectGraphs, OfVariablesOfEveryType) {
  const Reference reference("dtypes");
  CheckpointRoot root;
  for (const json& child : reference.checkpoint["object_graph"][0]["children"]) {
    const std::string name = child[0];
    if (name == "save_counter") continue;
    const json& entry = reference.checkpoint["entries"][name + "/.ATTRIBUTES/VARIABLE_VALUE"];
    const DType dtype = dtype_from_name(entry["dtype"].get<std::string>());
    const Shape shape(entry["shape"].get<std::vector<int64_t>>());
    root.track(name, Variable(dtype == DType::string ? Tensor::empty(dtype, shape) : Tensor(zeros(shape, dtype))));
  }
  expect_same(root.counted(), reference);
}

TEST_F(ObjectGraphs, OfRandomGenerators) {
  auto g = random::Generator::from_seed(1),
       h = random::Generator::from_state(Tensor{int64_t{1}, int64_t{2}, int64_t{3}});
  CheckpointRoot root;
  root.track("g", g);
  root.track("h", h);
  expect_same(root.counted(), Reference("random_generator"));
}

// Not there: DenseHashTable, and tables whose values are vectors.
TEST_F(ObjectGraphs, OfTables) {
  lookup::MutableHashTable words(DType::string, DType::int64, int64_t{-1});
  words.insert(Tensor::of<Bytes>({Bytes("a"), Bytes("b"), Bytes("c1")}), Tensor{int64_t{1}, int64_t{2}, int64_t{3}});
  CheckpointRoot root;
  root.track("words", words);
  expect_same(root.counted(), Reference("lookup_tables"), {"dense", "vectors"});
}

TEST_F(ObjectGraphs, OfIterators) {
  auto iterator = data::range(20).make_iterator();
  CheckpointRoot root;
  root.track("it", iterator);
  root.track("step", Variable(int32_t{3}));
  expect_same(root.counted(), Reference("data_iterators"));
}

TEST_F(ObjectGraphs, OfTheWholeStateOfTraining) {
  Sequential net = conv_bn_model();
  optimizers::Adam adam(0.01);
  adam.build(net.trainable_variables());
  const Variable step(int64_t{0}, {.name = "step"});
  auto iterator =
      data::from_tensor_slices(zeros({12, 6, 6, 2}), zeros({12}, DType::int64)).batch(4).repeat().make_iterator();
  CheckpointRoot root;
  root.track("iterator", iterator);
  root.track("net", net);
  root.track("optimizer", adam);
  root.track("step", step);
  expect_same(root.counted(), Reference("train_state"));
}

}  // namespace
}  // namespace runnel::keras
