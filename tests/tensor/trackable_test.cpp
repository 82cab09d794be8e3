// The object graph: edges, lists and dicts, keys, and values that wait for their part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runnel/ops/variable_slot.h"
#include "runnel/runnel.h"
#include "runnel/tensor/object_graph.h"
#include "runnel/tensor/saved_graph.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct PlainNode : Trackable {};

std::vector<std::string> edge_names_of(const Trackable& object) {
  std::vector<std::string> names;
  for (const Trackable::Edge& edge : object.edges()) names.push_back(edge.name);
  return names;
}

std::vector<std::string> keys_of(Trackable& root) {
  std::vector<std::string> keys;
  for (const ObjectGraph::Node& node : ObjectGraph::of(root).nodes) {
    for (const auto& attribute : node.attributes) keys.push_back(attribute.checkpoint_key);
  }
  return keys;
}

Variable scalar_variable(float value) { return Variable(Tensor(value)); }
float number_in(const Variable& v) { return v.value().item<float>(); }

// What a checkpoint of `root` would give back: the values are those of now.
std::shared_ptr<SavedGraph> saved_state_of(Trackable& root) {
  ObjectGraph graph = ObjectGraph::of(root);
  std::map<std::string, Tensor> values;
  for (ObjectGraph::Node& node : graph.nodes) {
    for (ObjectGraph::Attribute& attribute : node.attributes) {
      const std::vector<Tensor> tensors = attribute.value.get();
      for (size_t i = 0; i < tensors.size(); ++i) {
        values[attribute.checkpoint_key + attribute.value.suffixes[i]] = tensors[i];
      }
    }
    node.object = nullptr;
  }
  return SavedGraph::make(std::move(graph), [values](const std::string& key, const std::vector<std::string>& suffixes) {
    std::vector<Tensor> tensors;
    for (const std::string& suffix : suffixes) tensors.push_back(values.at(key + suffix));
    return tensors;
  });
}

TEST(TrackableEdges, AreReplacedAndRemoved) {
  PlainNode node;
  node.track("a", scalar_variable(1));
  node.track("b", scalar_variable(2));
  const auto other = std::make_shared<PlainNode>();
  node.replace("a", other);
  EXPECT_EQ(node.find_edge("a")->object, other.get());
  EXPECT_THAT(edge_names_of(node), ElementsAre("a", "b"));
  EXPECT_EQ(other.use_count(), 2);
  node.untrack("a");
  EXPECT_EQ(other.use_count(), 1);
  EXPECT_THAT(edge_names_of(node), ElementsAre("b"));
  test::expect_error([&] { node.track("b", other); }, Code::invalid_argument, "leads to another part already");
  test::expect_error([&] { node.track("c", Variable()); }, Code::invalid_argument, "was never made");
  test::expect_error([&] { node.track("c", std::shared_ptr<PlainNode>()); }, Code::invalid_argument, "is null");
}

TEST(TrackableEdges, StayWhenTheNewPartIsRefused) {
  TrackableDict dict;
  const auto last = std::make_shared<PlainNode>(), best = std::make_shared<PlainNode>();
  dict.set("best", best);
  dict.set("last", last);
  dict.set("best", dict.find_edge("last")->owner);  // of an edge that moves while it is read
  EXPECT_EQ(dict.find_edge("best")->object, last.get());
  EXPECT_THAT(edge_names_of(dict), ElementsAre("best", "last"));
  test::expect_error([&] { dict.set("best", std::shared_ptr<Trackable>()); }, Code::invalid_argument, "null");
  EXPECT_EQ(dict.find_edge("best")->object, last.get());
  EXPECT_THAT(edge_names_of(dict), ElementsAre("best", "last"));
}

TEST(TrackableEdges, OfListsAreRenumbered) {
  TrackableList list;
  const Variable a = scalar_variable(1), b = scalar_variable(2), c = scalar_variable(3);
  list.append(a);
  list.append(c);
  list.insert(1, b);
  EXPECT_THAT(edge_names_of(list), ElementsAre("0", "1", "2"));
  EXPECT_EQ(list.find_edge("1")->object, &b.slot());
  list.remove(0);
  EXPECT_THAT(edge_names_of(list), ElementsAre("0", "1"));
  EXPECT_EQ(list.find_edge("1")->object, &c.slot());
  test::expect_error([&] { list.remove(2); }, Code::out_of_range, "has 2 elements");
  test::expect_error([&] { list.insert(3, a); }, Code::out_of_range, "has 2 elements");
}

TEST(TrackableEdges, GoWithPartsThatEnd) {
  PlainNode node;
  TrackableList list;
  PlainNode stays;
  {
    PlainNode local;
    node.track("local", local);
    list.append(local);
    list.append(stays);
    EXPECT_THAT(edge_names_of(node), ElementsAre("local"));
  }
  EXPECT_TRUE(node.edges().empty());
  EXPECT_THAT(edge_names_of(list), ElementsAre("0"));
  EXPECT_EQ(list.find_edge("0")->object, &stays);
  list.append(scalar_variable(1));
  EXPECT_THAT(edge_names_of(list), ElementsAre("0", "1"));
}

TEST(TrackableEdges, KeepWhatIsHandedOverByPointer) {
  PlainNode node;
  {
    const auto part = std::make_shared<PlainNode>();
    node.track("part", *part);
    node.track("part", part);  // the same part, now to be kept
    EXPECT_EQ(part.use_count(), 2);
  }
  EXPECT_NE(node.find_edge("part"), nullptr);
}

// The last pointer to a part goes with one edge, and other edges to it with the part.
TEST(TrackableEdges, OfOnePartGoTogether) {
  PlainNode node;
  const auto add_part = [&] {
    const auto part = std::make_shared<PlainNode>();
    node.track("by_address", *part);
    node.track("by_pointer", part);
    node.track("other", scalar_variable(1));
  };
  add_part();
  node.untrack("by_pointer");
  EXPECT_THAT(edge_names_of(node), ElementsAre("other"));
  node.untrack("other");
  add_part();
  node.replace("by_pointer", scalar_variable(2));
  EXPECT_THAT(edge_names_of(node), ElementsAre("by_pointer", "other"));
  EXPECT_NE(node.find_edge("by_pointer")->handle.num_elements(), 0);
}

TEST(TrackableEdges, OfDictsGoByKey) {
  TrackableDict dict;
  const Variable a = scalar_variable(1), b = scalar_variable(2);
  dict.set("x", a);
  dict.set("y", a);
  dict.set("x", b);
  EXPECT_THAT(edge_names_of(dict), ElementsAre("x", "y"));
  EXPECT_EQ(dict.find_edge("x")->object, &b.slot());
  dict.remove("x");
  EXPECT_FALSE(dict.contains("x"));
  EXPECT_EQ(dict.size(), 1u);
}

TEST(ObjectGraphWalk, FirstMetFirstNumbered) {
  PlainNode root, left;
  const Variable shared = scalar_variable(1);
  left.track("deep", shared);
  root.track("left", left);
  root.track("v", shared);
  root.track("self", root);
  root.track("odd/name.x", scalar_variable(2));
  const ObjectGraph graph = ObjectGraph::of(root);
  ASSERT_EQ(graph.nodes.size(), 4u);
  EXPECT_EQ(graph.nodes[0].children[2].node, 0u);
  EXPECT_EQ(graph.nodes[1].children[0].node, 2u);
  EXPECT_THAT(keys_of(root), ElementsAre("v/.ATTRIBUTES/VARIABLE_VALUE", "odd.Sname..x/.ATTRIBUTES/VARIABLE_VALUE"));
}

TEST(SavableValues, CheckDtypeAndShape) {
  const Variable v(Tensor{1.f, 2.f}, {.name = "w"});
  const SavableValue value = v.slot().savable_values().at(0);
  EXPECT_EQ(value.full_name, "w");
  test::expect_error([&] { value.check({Tensor{1.f}}); }, Code::invalid_argument,
                     "Variable 'w' has shape [2], assigned [1]");
  test::expect_error([&] { value.check({Tensor{1, 2}}); }, Code::invalid_argument, "Variable 'w'");
  const Tensor before = value.get().at(0);
  v.assign_add(Tensor{1.f, 1.f});
  value.set({Tensor{3.f, 4.f}});
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(before.to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(SavableValues, OfTablesIteratorsAndGenerators) {
  PlainNode saved;
  lookup::MutableHashTable table(DType::int64, DType::float32, 0.f);
  table.insert(Tensor{int64_t{1}, int64_t{2}}, Tensor{10.f, 20.f});
  auto iterator = data::range(10).make_iterator();
  iterator.next();
  auto generator = random::Generator::from_seed(7);
  generator.uniform({3});
  saved.track("table", table);
  saved.track("iterator", iterator);
  saved.track("generator", generator);
  const auto state = saved_state_of(saved);
  const Tensor drawn = generator.uniform({2});

  PlainNode fresh;
  lookup::MutableHashTable other(DType::int64, DType::float32, 0.f);
  other.insert(Tensor{int64_t{5}}, Tensor{50.f});
  auto later = data::range(10).make_iterator();
  auto stream = random::Generator::from_seed(1);
  fresh.track("table", other);
  fresh.track("iterator", later);
  fresh.track("generator", stream);
  state->restore(fresh);
  EXPECT_EQ(other.size(), 2);
  EXPECT_EQ(other[Tensor{int64_t{2}}].to_vector<float>(), (std::vector<float>{20}));
  EXPECT_EQ(later.next()->item<int64_t>(), 1);
  EXPECT_EQ(stream.uniform({2}).to_vector<float>(), drawn.to_vector<float>());
}

TEST(PendingValues, WaitAtTheEdge) {
  PlainNode saved, saved_inner;
  saved_inner.track("w", scalar_variable(3));
  saved.track("inner", saved_inner);
  saved.track("v", scalar_variable(4));
  const auto state = saved_state_of(saved);

  PlainNode fresh, inner;
  state->restore(fresh);
  EXPECT_EQ(state->holder(0), &fresh);
  EXPECT_EQ(state->holder(1), nullptr);
  const Variable v = scalar_variable(0), w = scalar_variable(0);
  fresh.track("v", v);
  EXPECT_EQ(number_in(v), 4);
  fresh.track("inner", inner);
  inner.track("w", w);
  EXPECT_EQ(number_in(w), 3);
  EXPECT_EQ(state->holder(1), &inner);
  w.assign(9.f);
  fresh.track("again", inner);
  EXPECT_EQ(number_in(w), 9);
}

TEST(PendingValues, OfALaterGraphWin) {
  PlainNode saved;
  const Variable v = scalar_variable(1);
  saved.track("v", v);
  const auto first = saved_state_of(saved);
  v.assign(2.f);
  const auto second = saved_state_of(saved);
  PlainNode fresh;
  first->restore(fresh);
  second->restore(fresh);
  const Variable late = scalar_variable(0);
  fresh.track("v", late);
  EXPECT_EQ(number_in(late), 2);
}

TEST(PendingValues, ComeBackWithEveryRestore) {
  PlainNode saved, fresh;
  saved.track("v", scalar_variable(7));
  const auto state = saved_state_of(saved);
  const Variable v = scalar_variable(0);
  fresh.track("v", v);
  for (int i = 0; i < 2; ++i) {
    state->restore(fresh);
    EXPECT_EQ(number_in(v), 7);
    v.assign(9.f);
  }
}

TEST(PendingValues, ChangeNothingWhenOneDoesNotFit) {
  PlainNode saved, fresh;
  saved.track("a", scalar_variable(1));
  saved.track("b", Variable(Tensor{1.f, 2.f}));
  const Variable a = scalar_variable(0), b = scalar_variable(0);
  fresh.track("a", a);
  fresh.track("b", b);
  const auto state = saved_state_of(saved);
  test::expect_error([&] { state->restore(fresh); }, Code::invalid_argument, "has shape [], assigned [2]");
  EXPECT_EQ(number_in(a), 0);
  EXPECT_EQ(state->holder(1), nullptr);
}

// An optimizer of the older kind: its slots are no parts of it.
struct SlotKeeper : Trackable {
  std::vector<Slot> slot_variables() const override {
    std::vector<Slot> all;
    for (const auto& [variable, slot] : slots) all.push_back({&variable.slot(), "m", &slot.slot()});
    return all;
  }
  Variable make(const Variable& variable) {
    slots.emplace_back(variable, scalar_variable(0));
    slot_made(variable.slot(), "m", slots.back().second.slot());
    return slots.back().second;
  }
  std::vector<std::pair<Variable, Variable>> slots;
};

TEST(PendingValues, OfSlotsComeWhenTheSlotIsMade) {
  PlainNode saved;
  SlotKeeper saved_keeper;
  const Variable w = scalar_variable(1);
  saved.track("w", w);
  saved.track("opt", saved_keeper);
  saved_keeper.make(w).assign(5.f);
  EXPECT_THAT(keys_of(saved),
              ElementsAre("w/.ATTRIBUTES/VARIABLE_VALUE", "w/.OPTIMIZER_SLOT/opt/m/.ATTRIBUTES/VARIABLE_VALUE"));
  const auto state = saved_state_of(saved);
  for (const bool slot_first : {false, true}) {
    PlainNode fresh;
    SlotKeeper keeper;
    const Variable other = scalar_variable(0);
    fresh.track("w", other);
    fresh.track("opt", keeper);
    if (slot_first) keeper.make(other);
    const auto again = SavedGraph::make(state->graph(), [&](const std::string& key, const std::vector<std::string>&) {
      return std::vector<Tensor>{Tensor(key.find("SLOT") == std::string::npos ? 1.f : 5.f)};
    });
    again->restore(fresh);
    if (!slot_first) keeper.make(other);
    EXPECT_EQ(number_in(other), 1);
    EXPECT_EQ(number_in(keeper.slots[0].second), 5);
  }
}

TEST(PendingValues, ChangeNothingWhenASlotDoesNotFit) {
  PlainNode saved, fresh;
  SlotKeeper saved_keeper, keeper;
  const Variable w = scalar_variable(1), other = scalar_variable(0);
  saved.track("w", w);
  saved.track("opt", saved_keeper);
  saved_keeper.make(w);
  fresh.track("w", other);
  fresh.track("opt", keeper);
  keeper.make(other);
  const auto state =
      SavedGraph::make(ObjectGraph::of(saved), [&](const std::string& key, const std::vector<std::string>&) {
        return std::vector<Tensor>{key.find("SLOT") == std::string::npos ? Tensor(1.f) : Tensor{1.f, 2.f}};
      });
  test::expect_error([&] { state->restore(fresh); }, Code::invalid_argument, "assigned [2]");
  EXPECT_EQ(number_in(other), 0);
}

}  // namespace
}  // namespace runnel
