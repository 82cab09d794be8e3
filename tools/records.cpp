// runnel records: what is in TFRecord files.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "runnel/base/format.h"
#include "runnel/base/sha256.h"
#include "runnel/io/example.h"
#include "runnel/io/record_index.h"
#include "runnel/io/record_reader.h"
#include "runnel/io/wire.h"
#include "tools/commands.h"
#include "tools/printing.h"
#include "tools/progress.h"

namespace runnel::tools {
namespace {

using io::RecordReader;

struct RecordsArguments {
  std::vector<std::string> files;
  std::string compression = "auto";
  bool json = false;
  bool raw = false;
  uint64_t skip = 0;
  uint64_t limit = UINT64_MAX;
};

RecordReader open(const std::string& path, const RecordsArguments& arguments) {
  io::RecordReaderOptions options{.detect_compression = arguments.compression == "auto"};
  if (!options.detect_compression && arguments.compression != "none")
    options.compression = io::compression_from_name(arguments.compression);
  return RecordReader(path, options, Env::posix(), SourceSite());
}

const char* compression_text(io::Compression compression) {
  return compression == io::Compression::none ? "none" : io::compression_name(compression);
}

std::string_view text_of(ByteSpan bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

enum class Content { example, sequence_example, other };

// The messages have no mark of their own: what has just their fields, all the way down, is one.
Content content_of(std::string_view record) {
  if (record.empty()) return Content::other;
  if (io::wire::visit_features(record, [](std::string_view, io::wire::Kind, std::string_view) {})) {
    return Content::example;
  }
  io::wire::Cursor c(record);
  bool lists = false;
  while (!c.done()) {
    uint32_t tag = 0;
    std::string_view body;
    if (!c.tag(&tag) || (tag != 0x0a && tag != 0x12) || !c.bytes(&body)) return Content::other;
    lists = lists || tag == 0x12;
  }
  try {
    const io::SequenceExample parsed = io::SequenceExample::parse(record);
    return lists && !parsed.feature_lists.feature_list.empty() ? Content::sequence_example : Content::other;
  } catch (const Error&) {
    return Content::other;
  }
}

const char* content_name(Content content) {
  switch (content) {
    case Content::example: return "Example";
    case Content::sequence_example: return "SequenceExample";
    case Content::other: return "other";
  }
  return "other";
}

Json error_json(const io::RecordError& error) {
  return {{"code", code_name(error.code)}, {"message", error.what}, {"offset", error.offset}, {"record", error.record}};
}

struct Findings {
  Json json;
  bool damaged = false;
  std::string message;  // of the damage
};

// Reads a whole file; `each` sees every record.
template <class F>
Findings go_through(const std::string& path, const RecordsArguments& arguments, F each) {
  RecordReader reader = open(path, arguments);
  SlowProgress progress;
  ByteSpan record;
  RecordReader::Status status;
  while ((status = reader.read(&record)) == RecordReader::Status::record) {
    each(record);
    if (reader.position().record % 1024 == 0) progress.update(path, reader.file_position(), reader.file_size());
  }
  Findings findings;
  findings.json = {{"file", path},
                   {"records", reader.position().record},
                   {"bytes", reader.position().offset},
                   {"compression", compression_text(reader.compression())}};
  if (status == RecordReader::Status::damaged) {
    findings.damaged = true;
    findings.json["error"] = error_json(reader.error());
    try {
      reader.throw_error(SourceSite());
    } catch (const Error& e) {
      findings.message = e.what();
    }
  }
  return findings;
}

Findings stats_of(const std::string& path, const RecordsArguments& arguments) {
  Sha256 hash;
  uint64_t payload = 0, longest = 0, shortest = UINT64_MAX;
  std::map<std::string, uint64_t> kinds;
  std::map<std::string, std::map<std::string, uint64_t>> features;
  constexpr size_t max_features = 1000;  // a hostile file must not fill the memory
  Findings findings = go_through(path, arguments, [&](ByteSpan record) {
    hash.update(record);
    payload += record.size();
    longest = std::max<uint64_t>(longest, record.size());
    shortest = std::min<uint64_t>(shortest, record.size());
    const Content content = content_of(text_of(record));
    ++kinds[content_name(content)];
    if (content != Content::example) return;
    io::wire::visit_features(text_of(record), [&](std::string_view key, io::wire::Kind kind, std::string_view) {
      constexpr const char* names[] = {"empty", "bytes", "float", "int64"};
      if (features.size() < max_features) ++features[std::string(key)][names[static_cast<size_t>(kind)]];
    });
  });
  Json& json = findings.json;
  json["payload_bytes"] = payload;
  json["payload_sha256"] = hash.hex();
  json["shortest"] = shortest == UINT64_MAX ? 0 : shortest;
  json["longest"] = longest;
  json["kinds"] = kinds;
  json["features"] = features;
  if (findings.damaged) {  // last, where people look
    const Json error = json["error"];
    json.erase("error");
    json["error"] = error;
  }
  return findings;
}

void print_stats(const Json& j) {
  fmt::print(
      "{}\n  records      {}\n  bytes        {} (payload {}, records of {} to {})\n  compression  {}\n  sha256       "
      "{}\n",
      j["file"].get<std::string>(), j["records"].get<uint64_t>(), j["bytes"].get<uint64_t>(),
      j["payload_bytes"].get<uint64_t>(), j["shortest"].get<uint64_t>(), j["longest"].get<uint64_t>(),
      j["compression"].get<std::string>(), j["payload_sha256"].get<std::string>());
  for (const auto& [kind, count] : j["kinds"].items()) fmt::print("  {:<12} {}\n", kind, count.get<uint64_t>());
  for (const auto& [key, kinds] : j["features"].items()) {
    std::string text;
    for (const auto& [kind, count] : kinds.items()) {
      text += fmt::format("{}{} in {}", text.empty() ? "" : ", ", kind, count.get<uint64_t>());
    }
    fmt::print("    {:<24} {}\n", key, text);
  }
}

// All files are looked at; the first damage is the command's failure.
template <class F>
void for_files(const RecordsArguments& arguments, F look) {
  std::string failure;
  for (const std::string& file : arguments.files) {
    const Findings findings = look(file);
    if (findings.damaged && failure.empty()) failure = findings.message;
  }
  if (!failure.empty()) throw Error(Code::data_loss, failure);
}

void stats(const RecordsArguments& arguments) {
  for_files(arguments, [&](const std::string& file) {
    Findings findings = stats_of(file, arguments);
    if (arguments.json) {
      print_json(findings.json);
    } else {
      print_stats(findings.json);
    }
    return findings;
  });
}

void verify(const RecordsArguments& arguments) {
  for_files(arguments, [&](const std::string& file) {
    Findings findings = go_through(file, arguments, [](ByteSpan) {});
    if (arguments.json) {
      findings.json["ok"] = !findings.damaged;
      print_json(findings.json);
    } else {
      fmt::print("{}: {}, {} records, {} bytes, compression {}\n", file, findings.damaged ? "DAMAGED" : "ok",
                 findings.json["records"].get<uint64_t>(), findings.json["bytes"].get<uint64_t>(),
                 findings.json["compression"].get<std::string>());
    }
    return findings;
  });
}

Json record_json(std::string_view record) {
  switch (content_of(record)) {
    case Content::example: return {{"example", Json::parse(io::example_to_json(io::Example::parse(record)))}};
    case Content::sequence_example:
      return {{"sequence_example", Json::parse(io::sequence_example_to_json(io::SequenceExample::parse(record)))}};
    case Content::other: break;
  }
  return {{"text", escaped(record)}};
}

std::string feature_text(const io::Feature& feature) {
  constexpr size_t most = 8;
  auto list = [&](const char* kind, const auto& values, auto text) {
    std::string out = fmt::format("{}[", kind);
    for (size_t i = 0; i < std::min(values.size(), most); ++i) out += (i > 0 ? ", " : "") + text(values[i]);
    if (values.size() > most) out += fmt::format(", ... {} in all", values.size());
    return out + "]";
  };
  if (const auto* bytes = feature.bytes_list()) {
    return list("bytes", bytes->value, [](const std::string& v) {
      return v.size() <= 64 ? fmt::format("\"{}\"", escaped(v))
                            : fmt::format("\"{}\"... {} bytes", escaped(v.substr(0, 32)), v.size());
    });
  }
  if (const auto* floats = feature.float_list()) {
    return list("float", floats->value, [](float v) { return fmt::format("{}", v); });
  }
  if (const auto* integers = feature.int64_list()) {
    return list("int64", integers->value, [](int64_t v) { return fmt::format("{}", v); });
  }
  return "empty";
}

void print_record(std::string_view record, uint64_t number, uint64_t offset) {
  const Content content = content_of(record);
  fmt::print("record {} at byte {}, {} bytes, {}\n", number, offset, record.size(), content_name(content));
  if (content == Content::other) {
    fmt::print("  \"{}\"{}\n", escaped(record.substr(0, 256)), record.size() > 256 ? "..." : "");
    return;
  }
  auto print = [](const io::Features& features) {
    for (const auto& [key, feature] : features.feature) fmt::print("  {}: {}\n", escaped(key), feature_text(feature));
  };
  if (content == Content::example) return print(io::Example::parse(record).features);
  const io::SequenceExample sequence = io::SequenceExample::parse(record);
  print(sequence.context);
  for (const auto& [key, list] : sequence.feature_lists.feature_list) {
    fmt::print("  {}: {} steps\n", escaped(key), list.feature.size());
    for (size_t t = 0; t < std::min<size_t>(list.feature.size(), 4); ++t) {
      fmt::print("    {}\n", feature_text(list.feature[t]));
    }
  }
}

void cat(const RecordsArguments& arguments) {
  for (const std::string& file : arguments.files) {
    RecordReader reader = open(file, arguments);
    uint64_t printed = 0;
    while (printed < arguments.limit) {
      const io::RecordPosition at = reader.position();
      const std::optional<ByteSpan> record = reader.next(SourceSite());
      if (!record) break;
      if (at.record < arguments.skip) continue;
      ++printed;
      if (arguments.raw) {
        std::fwrite(record->data(), 1, record->size(), stdout);
      } else if (arguments.json) {
        Json json = {{"record", at.record}, {"offset", at.offset}, {"bytes", record->size()}};
        json.update(record_json(text_of(*record)));
        print_json(json);
      } else {
        print_record(text_of(*record), at.record, at.offset);
      }
    }
  }
}

void index(const RecordsArguments& arguments) {
  for (const std::string& file : arguments.files) {
    SlowProgress progress;
    const io::RecordIndex index = io::RecordIndex::build(
        file, Env::posix(), [&](uint64_t done, uint64_t total) { progress.update(file, done, total); });
    index.save(file);
    const std::string path = io::record_index_path(file);
    if (arguments.json) {
      print_json({{"file", file}, {"index", path}, {"records", index.size()}, {"bytes", index.file_size()}});
    } else {
      fmt::print("{}: {} records\n", path, index.size());
    }
  }
}

}  // namespace

void add_records(CLI::App& app) {
  CLI::App* records = app.add_subcommand("records", "Look into TFRecord files, check them, index them");
  records->require_subcommand(1);
  records->footer(
      "Exit status: 0 done, 1 a file is damaged or cannot be read, 2 the command line was wrong.\n"
      "Example: runnel records stats train.tfrecord --json");
  auto arguments = std::make_shared<RecordsArguments>();
  auto add = [&](const char* name, const char* what, void (*work)(const RecordsArguments&)) {
    CLI::App* command = records->add_subcommand(name, what);
    command->add_option("file", arguments->files, "TFRecord files")->required()->type_name("FILE");
    command->add_flag("--json", arguments->json, "Print JSON, one object per line");
    command->callback([arguments, work] { work(*arguments); });
    return command;
  };
  auto add_compression = [&](CLI::App* command) {
    command->add_option("--compression", arguments->compression, "How the files are compressed")
        ->check(CLI::IsMember({"auto", "none", "GZIP", "ZLIB"}))
        ->capture_default_str();
  };
  CLI::App* show = add("cat", "Print records", cat);
  add_compression(show);
  show->add_option("--skip", arguments->skip, "Leave out so many records at the beginning")->type_name("N");
  show->add_option("--limit", arguments->limit, "Print at most so many records")->type_name("N");
  show->add_flag("--raw", arguments->raw, "The payloads as they are, one after the other");
  add_compression(add("verify", "Read everything and check every checksum", verify));
  add_compression(add("stats", "Count records and bytes, tell compression, features and a hash", stats));
  add("index", "Write FILE.index, which gives length and random access to a plain file", index);
}

}  // namespace runnel::tools
