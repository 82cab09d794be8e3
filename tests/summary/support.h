#pragma once

// Event files as lists of events, and those that TensorFlow 2.15 wrote.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runnel/io/event_reader.h"
#include "runnel/io/record_reader.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_dir.h"

namespace runnel::test {

inline std::vector<std::string> records_of(const std::string& path) {
  io::RecordReader reader(path);
  std::vector<std::string> records;
  while (const auto record = reader.next()) {
    records.emplace_back(reinterpret_cast<const char*>(record->data()), record->size());
  }
  return records;
}

inline std::string only_event_file(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (io::is_event_file(entry.path().filename().string())) found.push_back(entry.path());
  }
  EXPECT_EQ(found.size(), 1u) << folder;
  return found.empty() ? "" : found[0];
}

// Of an event without its time, which is its first field.
inline std::string timeless(const std::string& record) {
  EXPECT_EQ(record.substr(0, 1), "\x09");
  return record.substr(9);
}

// What a folder's only file holds: for each value "tag@step", for other events their kind.
inline std::vector<std::string> tags_of(const std::string& folder) {
  std::vector<std::string> tags;
  for (const std::string& record : records_of(only_event_file(folder))) {
    io::Event event;
    EXPECT_TRUE(io::parse_event(record, &event));
    if (event.kind != io::EventKind::summary) {
      if (event.kind != io::EventKind::file_version) tags.emplace_back(io::event_kind_name(event.kind));
      continue;
    }
    io::visit_event_values(event.body, [&](const io::EventValue& value) {
      tags.push_back(std::string(value.tag) + "@" + std::to_string(event.step));
    });
  }
  return tags;
}

inline std::string tag_of_record(const std::string& record) {
  io::Event event;
  std::string tag = "not of a summary";
  if (io::parse_event(record, &event) && event.kind == io::EventKind::summary) {
    io::visit_event_values(event.body, [&](const io::EventValue& value) { tag = value.tag; });
  }
  return tag;
}

// The events of our only file in `folder` are those of TensorFlow's, byte for byte but for the times.
inline void expect_same_events(const std::string& folder, const std::string& tensorflows) {
  const std::vector<std::string> ours = records_of(only_event_file(folder)), theirs = records_of(tensorflows);
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_TRUE(timeless(ours[i]) == timeless(theirs[i]))
        << "event " << i << " (" << tag_of_record(theirs[i]) << "): ours of " << tag_of_record(ours[i]) << " has "
        << ours[i].size() << " bytes, TensorFlow's " << theirs[i].size();
  }
}

inline std::string tensorflow_events(const std::string& folder) {
  return fixtures() / "tf215/events" / folder / "events.out.tfevents.0000000001.host.v2";
}

}  // namespace runnel::test
