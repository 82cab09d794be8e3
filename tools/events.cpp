// runnel events: what is in TensorBoard's event files.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/io/event_point.h"
#include "runnel/io/event_reader.h"
#include "runnel/io/wire.h"
#include "tools/commands.h"
#include "tools/event_values.h"
#include "tools/printing.h"

namespace runnel::tools {
namespace {

using Json = nlohmann::ordered_json;
using io::EventReader;

struct EventsArguments {
  std::string path;
  std::string tag;
  uint64_t limit = UINT64_MAX;
  uint64_t lines = 10;
  bool json = false;
  bool csv = false;
  bool follow = false;
};

using TakePoint = FunctionRef<void(const io::EventPoint&)>;

// False where the event is damaged, its metadata too.
bool visit_points(const io::Event& event, TakePoint take) {
  bool metadata_ok = true;
  const bool values_ok = io::visit_event_points(event, [&](const io::EventPoint& point) {
    io::EventMetadata metadata;
    if (point.value != nullptr) metadata_ok = io::parse_event_metadata(point.value->metadata, &metadata) && metadata_ok;
    take(point);
  });
  return values_ok && metadata_ok;
}

Json description_of(const io::EventPoint& point, std::string_view plugin) {
  return point.value ? describe_event_value(*point.value, plugin) : describe_event_bytes(point.bytes);
}

void report_damage(const EventReader& reader) {
  std::fflush(stdout);
  try {
    reader.throw_error(SourceSite());
  } catch (const Error& e) {
    fmt::print(stderr, "runnel: {}\n", e.what());
  }
}

void report_bad_summary(const std::string& file, const io::Event& event) {
  std::fflush(stdout);
  fmt::print(stderr, "runnel: [events] {}: the event of step {} is damaged\n", file, event.step);
}

// All events there are now. Damage is reported and stepped over; false where nothing behind it can be found.
bool read_events(EventReader& reader, const std::function<void(const io::Event&)>& take, bool tell_cut = true) {
  io::Event event;
  while (true) {
    switch (reader.read(&event)) {
      case EventReader::Status::event: take(event); break;
      case EventReader::Status::end: return true;
      case EventReader::Status::cut:
        if (tell_cut) report_damage(reader);
        return true;
      case EventReader::Status::damaged:
        report_damage(reader);
        if (!reader.skip_damaged()) return false;
    }
  }
}

void for_points(const EventsArguments& a,
                const std::function<void(const std::string& run, const io::EventPoint&)>& take) {
  for (const io::EventRun& run : io::find_event_runs(a.path, Env::posix(), SourceSite())) {
    for (const std::string& file : run.files) {
      EventReader reader(file, Env::posix(), SourceSite());
      read_events(reader, [&](const io::Event& event) {
        const bool ok = visit_points(event, [&](const io::EventPoint& point) {
          if (a.tag.empty() || point.tag == a.tag) take(run.name, point);
        });
        if (!ok) report_bad_summary(file, event);
      });
    }
  }
}

struct Series {
  std::string plugin;
  uint64_t count = 0;
  int64_t first_step = 0, last_step = 0;
  std::string last;  // the last value, as bytes: only that is described
};

// Describes the value again that `kept` holds.
Json last_value(const Series& series, bool of_summary) {
  if (!of_summary) return describe_event_bytes(series.last);
  io::EventValue value;
  if (!io::parse_event_value(series.last, &value)) return {{"error", "the value is damaged"}};
  return describe_event_value(value, series.plugin);
}

void list_series(const EventsArguments& a) {
  // By run and tag; values of summaries apart from the rest, which may use their tags.
  std::map<std::tuple<std::string, std::string, bool>, Series> all;
  for (const io::EventRun& run : io::find_event_runs(a.path, Env::posix(), SourceSite())) {
    for (const std::string& file : run.files) {
      EventReader reader(file, Env::posix(), SourceSite());
      const auto add = [&](const io::EventPoint& point, std::string_view bytes) {
        Series& s = all[{run.name, std::string(point.tag), point.value != nullptr}];
        if (s.count++ == 0) {
          s.plugin = io::plugin_of(point);
          s.first_step = point.event.step;
        }
        s.last_step = point.event.step;
        s.last = bytes;
      };
      read_events(reader, [&](const io::Event& event) {
        bool ok = true;
        if (event.kind != io::EventKind::summary) {
          ok = visit_points(event, [&](const io::EventPoint& point) { add(point, point.bytes); });
        } else {
          ok = visit_points(event, [](const io::EventPoint&) {});  // whether all of it is whole
          io::wire::read_bytes(event.body, [&](std::string_view bytes) {
            io::EventValue value;
            if (!io::parse_event_value(bytes, &value)) return;
            add({.tag = value.tag, .event = event, .value = &value}, bytes);
          });
        }
        if (!ok) report_bad_summary(file, event);
      });
    }
  }
  if (!a.json) fmt::print("{:<20} {:<40} {:<12} {:>8} {:>20}  {}\n", "run", "tag", "plugin", "count", "steps", "last");
  for (const auto& [key, s] : all) {
    const auto& [run, tag, of_summary] = key;
    if (!a.tag.empty() && tag != a.tag) continue;
    const Json last = last_value(s, of_summary);
    if (a.json) {
      print_json({{"run", run},
                  {"tag", tag},
                  {"plugin", s.plugin},
                  {"count", s.count},
                  {"first_step", s.first_step},
                  {"last_step", s.last_step},
                  {"last_value", last}});
    } else {
      fmt::print("{:<20} {:<40} {:<12} {:>8} {:>20}  {}\n", run, tag, s.plugin, s.count,
                 fmt::format("{}..{}", s.first_step, s.last_step), description_text(last));
    }
  }
}

// A cell of a table of comma-separated values.
std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// Prints points as they come; the plugin of a tag is what its first value said.
class PointPrinter {
 public:
  explicit PointPrinter(const EventsArguments& a) : json_(a.json), csv_(a.csv) {
    if (csv_) fmt::print("run,tag,step,wall_time,value\n");
  }
  std::string line(const std::string& run, const io::EventPoint& point) {
    std::string& plugin = plugins_[{run, std::string(point.tag)}];
    if (plugin.empty()) plugin = io::plugin_of(point);
    const Json what = description_of(point, plugin);
    if (json_) {
      const Json json = {{"run", run},
                         {"tag", std::string(point.tag)},
                         {"plugin", plugin},
                         {"step", point.event.step},
                         {"wall_time", point.event.wall_time},
                         {"value", what}};
      return json.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    if (csv_) {
      return fmt::format("{},{},{},{:.6f},{}", csv_cell(run), csv_cell(point.tag), point.event.step,
                         point.event.wall_time, csv_cell(description_text(what)));
    }
    return fmt::format("{:.3f} {} step {} {} [{}] {}", point.event.wall_time, run, point.event.step, point.tag, plugin,
                       description_text(what));
  }

 private:
  bool json_, csv_;
  std::map<std::pair<std::string, std::string>, std::string> plugins_;
};

void cat_points(const EventsArguments& a) {
  PointPrinter printer(a);
  uint64_t printed = 0;
  for_points(a, [&](const std::string& run, const io::EventPoint& point) {
    if (printed++ < a.limit) fmt::print("{}\n", printer.line(run, point));
  });
}

// Scalars alone: the numbers that other programs want.
void export_scalars(const EventsArguments& a) {
  EventsArguments table = a;
  table.csv = !a.json;
  PointPrinter printer(table);
  std::map<std::pair<std::string, std::string>, bool> scalar;
  for_points(a, [&](const std::string& run, const io::EventPoint& point) {
    const auto [at, first] = scalar.emplace(std::pair(run, std::string(point.tag)), io::plugin_of(point) == "scalars");
    if (at->second) fmt::print("{}\n", printer.line(run, point));
  });
}

void verify_events(const EventsArguments& a) {
  std::string failure;
  for (const io::EventRun& run : io::find_event_runs(a.path, Env::posix(), SourceSite())) {
    for (const std::string& file : run.files) {
      EventReader reader(file, Env::posix(), SourceSite());
      io::Event event;
      uint64_t events = 0, damaged = 0;
      Json faults = Json::array();
      const auto note = [&](const std::string& what, uint64_t offset) {
        ++damaged;
        faults.push_back({{"offset", offset}, {"message", what}});
        if (failure.empty()) failure = fmt::format("[events] {}: at byte {}: {}", file, offset, what);
      };
      for (bool more = true; more;) {
        const uint64_t at = reader.position().offset;
        switch (reader.read(&event)) {
          case EventReader::Status::event:
            ++events;
            if (!visit_points(event, [](const io::EventPoint&) {})) note("the summary is damaged", at);
            break;
          case EventReader::Status::end: more = false; break;
          case EventReader::Status::cut:
            note(reader.error().what + ": its writer is at work, or was killed", at);
            more = false;
            break;
          case EventReader::Status::damaged: note(reader.error().what, at); more = reader.skip_damaged();
        }
      }
      if (a.json) {
        print_json({{"file", file},
                    {"ok", damaged == 0},
                    {"events", events},
                    {"bytes", reader.file_size()},
                    {"faults", faults}});
      } else {
        fmt::print("{}: {}, {} events, {} bytes\n", file, damaged == 0 ? "ok" : "DAMAGED", events, reader.file_size());
        for (const Json& fault : faults) {
          fmt::print("  at byte {}: {}\n", fault["offset"].get<uint64_t>(), fault["message"].get<std::string>());
        }
      }
    }
  }
  if (!failure.empty()) throw Error(Code::data_loss, failure);
}

// The last lines, and then, where asked for, what is added, in files that are there and in new ones.
void tail_points(const EventsArguments& a) {
  struct Followed {
    std::string run;
    EventReader reader;
    bool lost = false;
  };
  PointPrinter printer(a);
  std::map<std::string, Followed> files;
  std::deque<std::string> last;
  bool first = true;
  const auto print = [&](const std::string& run, const std::string& file, const io::Event& event) {
    const bool ok = visit_points(event, [&](const io::EventPoint& point) {
      if (!a.tag.empty() && point.tag != a.tag) return;
      std::string line = printer.line(run, point);
      if (!first) return fmt::print("{}\n", line);
      last.push_back(std::move(line));
      if (last.size() > a.lines) last.pop_front();
    });
    if (!ok) report_bad_summary(file, event);
  };
  const auto report = [](const Error& e) {
    std::fflush(stdout);
    fmt::print(stderr, "runnel: {}\n", e.what());
  };
  // While it follows, files and folders may vanish, be replaced and come back.
  const auto find_files = [&] {
    for (const io::EventRun& run : io::find_event_runs(a.path, Env::posix(), SourceSite())) {
      for (const std::string& file : run.files) {
        if (!files.contains(file)) {
          files.emplace(file, Followed{run.name, EventReader(file, Env::posix(), SourceSite())});
        }
      }
    }
  };
  bool found = true;
  while (true) {
    try {
      find_files();
      found = true;
    } catch (const Error& e) {
      if (first) throw;
      if (std::exchange(found, false)) report(e);
    }
    for (auto it = files.begin(); it != files.end();) {
      auto& [path, followed] = *it;
      try {
        if (!followed.lost) {
          if (!first) followed.reader.refresh(SourceSite());
          followed.lost = !read_events(
              followed.reader, [&](const io::Event& event) { print(followed.run, path, event); }, !a.follow);
        }
        ++it;
      } catch (const Error& e) {  // it is gone, or another stands in its place, which is found as a new one
        if (first) throw;
        report(e);
        it = files.erase(it);
      }
    }
    for (const std::string& line : last) fmt::print("{}\n", line);
    last.clear();
    first = false;
    std::fflush(stdout);
    if (!a.follow) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

}  // namespace

void add_events(CLI::App& app) {
  CLI::App* events = app.add_subcommand("events", "Look into TensorBoard's event files, check them, follow them");
  events->require_subcommand(1);
  events->footer(
      "Damage is reported on standard error and stepped over.\n"
      "Exit status: 0 done, 1 a file cannot be read or verify found damage, 2 the command line was wrong.\n"
      "Example: runnel events ls logs --json");
  auto arguments = std::make_shared<EventsArguments>();
  auto add = [&](const char* name, const char* what, void (*work)(const EventsArguments&)) {
    CLI::App* command = events->add_subcommand(name, what);
    command->add_option("path", arguments->path, "An event file, or a folder with runs in it")
        ->required()
        ->type_name("PATH");
    command->add_flag("--json", arguments->json, "Print JSON, one object per line");
    command->callback([arguments, work] { work(*arguments); });
    return command;
  };
  auto add_tag = [&](CLI::App* command) {
    command->add_option("--tag", arguments->tag, "Only values of this tag")->type_name("TAG");
    return command;
  };
  auto add_csv = [&](CLI::App* command) {
    command->add_flag("--csv", arguments->csv, "Print comma-separated values");
    return command;
  };
  add_tag(add("ls", "List runs and tags with their plugin, number of values, steps and last value", list_series));
  CLI::App* cat = add_csv(add_tag(add("cat", "Print every value", cat_points)));
  cat->add_option("--limit", arguments->limit, "Print at most so many values")->type_name("N");
  add("verify", "Read everything and check every checksum", verify_events);
  add_csv(add_tag(add("export", "Print all scalars, as comma-separated values or JSON", export_scalars)));
  CLI::App* tail = add_csv(add_tag(add("tail", "Print the last values", tail_points)));
  tail->add_option("-n,--lines", arguments->lines, "So many")->type_name("N")->capture_default_str();
  tail->add_flag("-f,--follow", arguments->follow, "Go on with what is added, until interrupted");
}

}  // namespace runnel::tools
