// Scalars written as summaries, and event files read.
#include <unistd.h>

#include <thread>

#include "bench/common.h"
#include "bench/events.h"
#include "runnel/io/event_reader.h"
#include "runnel/runnel.h"
#include "runnel/summary/summary.h"

namespace {

using namespace runnel;
using Call = std::function<void()>;

struct TempFolder {
  std::string path = Env::posix().create_temp_dir();
  ~TempFolder() { Env::posix().remove_tree(path); }
};

// What the thread that trains pays; the writer's own thread writes meanwhile.
Call write_scalars() {
  struct Run {
    TempFolder folder;
    summary::SummaryWriter writer = summary::create_file_writer(folder.path);
    int64_t step = 0;
  };
  return [run = std::make_shared<Run>()] {
    const auto scope = run->writer.as_default();
    for (int i = 0; i < bench::kScalars; ++i) summary::scalar("loss", 0.5f, run->step++);
  };
}

// A million a second.
Call clock_of_scalars() {
  return [] { std::this_thread::sleep_for(std::chrono::microseconds(bench::kScalars)); };
}

struct EventFile {
  TempFolder folder;
  std::string path = join_path(folder.path, "tfevents");
  EventFile() {
    io::TFRecordWriter writer(path);
    for (int64_t i = 0; i < bench::kEvents; ++i) writer.write(bench::scalar_event(i));
    writer.close();
  }
};

Call read_events() {
  return [file = std::make_shared<EventFile>()] {
    io::EventReader reader(file->path);
    io::Event event;
    int64_t values = 0;
    while (reader.read(&event) == io::EventReader::Status::event) {
      io::visit_event_values(event.body,
                             [&](const io::EventValue& value) { values += io::plugin_of(value) == "scalars"; });
    }
    if (values != bench::kEvents) std::abort();
  };
}

// The records alone, with both checksums.
Call read_frames() {
  return [file = std::make_shared<EventFile>()] {
    io::RecordReader reader(file->path);
    ByteSpan record;
    int64_t records = 0;
    while (reader.read(&record) == io::RecordReader::Status::record) ++records;
    if (records != bench::kEvents) std::abort();
  };
}

}  // namespace

int main(int argc, char** argv) {
  return bench::main_of(argc, argv,
                        {{"summary_scalars", [](int) { return std::vector<Call>{write_scalars()}; }},
                         {"summary_scalars_1m", [](int) { return std::vector<Call>{clock_of_scalars()}; }},
                         {"events_read", [](int) { return std::vector<Call>{read_events()}; }},
                         {"events_read_frames", [](int) { return std::vector<Call>{read_frames()}; }}},
                        [](int threads) { set_num_threads(threads); });
}
