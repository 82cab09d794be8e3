// Every event file among the fixtures (TensorFlow's of many versions, PyTorch's) is written again with our functions.
// What is read from ours is what is read from theirs.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "runnel/compat/v1_summary.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/summary/summary.h"
#include "runnel/tensor/serialize.h"
#include "tests/summary/support.h"

namespace runnel::summary {
namespace {

namespace v1 = compat::v1;

// A value as text that is the same where the content is: a tensor's elements, however they are encoded. Metadata counts
// with the first value of a tag.
std::string content_of(const io::EventValue& value, bool first_of_tag) {
  io::EventMetadata metadata;
  if (first_of_tag) {
    EXPECT_TRUE(io::parse_event_metadata(value.metadata, &metadata));
  }
  std::string text = std::string(value.tag) + " plugin " + std::string(metadata.plugin) + " of " +
                     std::string(metadata.plugin_content) + " " + std::string(metadata.display_name) + " " +
                     std::string(metadata.description) + " kind " + std::to_string(static_cast<int>(value.kind)) + ": ";
  if (value.kind == io::ValueKind::simple_value) {
    return text.append(reinterpret_cast<const char*>(&value.simple_value), sizeof value.simple_value);
  }
  if (value.kind != io::ValueKind::tensor) return text.append(value.body);
  return text + serialize_tensor_proto(parse_tensor_proto(value.body));
}

struct Decoded {
  std::vector<std::string> events;
  bool whole = true;
};

// Every event but the first, which says who wrote the file: step, kind and content.
Decoded decoded(const std::string& path) {
  Decoded all;
  std::set<std::string, std::less<>> tags;
  io::EventReader reader(path);
  io::Event event;
  io::EventReader::Status status;
  while ((status = reader.read(&event)) == io::EventReader::Status::event) {
    if (event.kind == io::EventKind::file_version) continue;
    const std::string head = std::to_string(event.step) + " " + io::event_kind_name(event.kind) + " ";
    if (event.kind != io::EventKind::summary) {
      all.events.push_back(head + std::string(event.body));
      continue;
    }
    std::string content = head;
    const auto add = [&](const io::EventValue& value) { content += content_of(value, tags.emplace(value.tag).second); };
    EXPECT_TRUE(io::visit_event_values(event.body, add)) << path;
    all.events.push_back(content);
  }
  all.whole = status == io::EventReader::Status::end;
  return all;
}

// Does the Summary hold one tensor, as functions of TensorFlow 2 write it?
bool holds_one_tensor(std::string_view summary) {
  int values = 0, tensors = 0;
  io::visit_event_values(summary, [&](const io::EventValue& value) {
    ++values;
    tensors += value.kind == io::ValueKind::tensor && value.node_name.empty();
  });
  return values == 1 && tensors == 1;
}

// Files of TensorFlow 2: everything goes through the default writer.
void write_again(const io::Event& event) {
  switch (event.kind) {
    case io::EventKind::graph_def: EXPECT_TRUE(graph_def(event.body)); return;
    case io::EventKind::summary:
      if (!holds_one_tensor(event.body)) {
        experimental::write_raw_pb(std::string(event.body), event.step);
        return;
      }
      io::visit_event_values(event.body, [&](const io::EventValue& value) {
        write(value.tag, parse_tensor_proto(value.body), event.step, value.metadata);
      });
      return;
    default: FAIL() << "a writer of TensorFlow 2 has nothing for " << io::event_kind_name(event.kind);
  }
}

// Those of TensorFlow 1.
void write_again(v1::summary::FileWriter& writer, const io::Event& event) {
  io::EventRunMetadata run;
  switch (event.kind) {
    case io::EventKind::graph_def: return writer.add_graph_def(event.body, event.step);
    case io::EventKind::meta_graph_def: return writer.add_meta_graph(event.body, event.step);
    case io::EventKind::summary: return writer.add_summary(event.body, event.step);
    case io::EventKind::tagged_run_metadata:
      ASSERT_TRUE(io::parse_event_run_metadata(event.body, &run));
      return writer.add_run_metadata(run.run_metadata, std::string(run.tag), event.step);
    default: {
      std::string whole;
      io::append_event(whole, event.wall_time, event.step, event.kind, event.body);
      return writer.add_event(whole);
    }
  }
}

bool is_of_tensorflow_2(const std::string& path) {
  io::EventReader reader(path);
  io::Event event;
  while (reader.read(&event) == io::EventReader::Status::event) {
    if (event.kind != io::EventKind::summary && event.kind != io::EventKind::graph_def &&
        event.kind != io::EventKind::file_version) {
      return false;
    }
    // A graph of TensorFlow 2 has no step.
    if (event.kind == io::EventKind::graph_def && event.step != 0) return false;
  }
  return path.ends_with(".v2");
}

void rewrite(const std::string& path, const std::string& folder) {
  io::EventReader reader(path);
  io::Event event;
  if (is_of_tensorflow_2(path)) {
    const SummaryWriter writer = create_file_writer(folder);
    const auto scope = writer.as_default();
    while (reader.read(&event) == io::EventReader::Status::event) {
      if (event.kind != io::EventKind::file_version) write_again(event);
    }
    writer.close();
    return;
  }
  const v1::Graph graph;
  const auto scope = graph.as_default();
  v1::summary::FileWriter writer(folder);
  while (reader.read(&event) == io::EventReader::Status::event) {
    if (event.kind != io::EventKind::file_version) write_again(writer, event);
  }
  writer.close();
}

// The files of the table that TensorBoard's reader made, and those of TensorFlow 2.15.
std::set<std::string> event_files() {
  std::set<std::string> files;
  std::ifstream table(test::fixtures() / "EXPECTED_events.tsv");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) files.insert(test::fixtures() / line.substr(0, line.find('\t')));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::fixtures() / "tf215/events")) {
    if (entry.is_regular_file() && io::is_event_file(entry.path().filename().string())) files.insert(entry.path());
  }
  return files;
}

TEST(WrittenAgain, EveryFileHasTheSameContent) {
  RUNNEL_REQUIRE_FIXTURES();
  int of_tensorflow_2 = 0, others = 0;
  const std::set<std::string> files = event_files();
  for (const std::string& path : files) {
    const Decoded theirs = decoded(path);
    test::TempDir dir;
    rewrite(path, dir.path());
    const Decoded ours = decoded(test::only_event_file(dir.path()));
    EXPECT_TRUE(ours.whole) << path;
    EXPECT_EQ(ours.events.size(), theirs.events.size()) << path;
    for (size_t i = 0; i < std::min(ours.events.size(), theirs.events.size()); ++i) {
      EXPECT_TRUE(ours.events[i] == theirs.events[i]) << path << ": event " << i;
    }
    ++(is_of_tensorflow_2(path) ? of_tensorflow_2 : others);
  }
  EXPECT_GT(files.size(), 40u);
  EXPECT_GT(of_tensorflow_2, 15);
  EXPECT_GT(others, 8);
}

}  // namespace
}  // namespace runnel::summary
