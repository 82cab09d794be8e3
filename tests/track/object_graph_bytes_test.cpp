// Object graphs that are read and written again.
#include "runnel/track/object_graph_bytes.h"

#include <gtest/gtest.h>

namespace runnel::train {
namespace {

std::string message(char field, const std::string& content) {
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(content.size())} + content;
}

constexpr char kNodes = 1, kRegisteredSaver = 4, kHasCheckpointValues = 5;

// What TensorFlow makes of a node depends on it: one that says false is left out, one that says nothing is looked at.
TEST(ObjectGraphBytes, AreWrittenAsTheyWereRead) {
  const std::string says_nothing = message(kNodes, "");
  const std::string says_false = message(kNodes, message(kHasCheckpointValues, ""));
  const std::string says_true = message(kNodes, message(kHasCheckpointValues, "\x08\x01"));
  const std::string saver = message(1, "Custom.Saver") + message(2, "object");
  const std::string with_saver = message(kNodes, message(kRegisteredSaver, saver) + message(kHasCheckpointValues, ""));
  const std::string bytes = says_nothing + says_true + says_false + with_saver;
  EXPECT_EQ(object_graph_to_bytes(object_graph_from_bytes(bytes)), bytes);
}

TEST(ObjectGraphBytes, GraphsOfProgramsAlwaysSayWhetherThereAreValues) {
  ObjectGraph graph;
  graph.nodes.emplace_back();
  EXPECT_EQ(object_graph_to_bytes(graph), message(kNodes, message(kHasCheckpointValues, "")));
}

}  // namespace
}  // namespace runnel::train
