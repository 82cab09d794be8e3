// runnel ckpt verify, diff.
#include <fmt/format.h>

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/track/object_graph_bytes.h"
#include "tools/ckpt.h"
#include "tools/ckpt_files.h"
#include "tools/ckpt_graph.h"
#include "tools/ckpt_values.h"
#include "tools/commands.h"

namespace runnel::tools {
namespace {

using io::CheckpointEntry;
using io::CheckpointReader;

struct Damage {
  std::string key;
  Error error;
};

Json error_json(const Error& error) { return {{"code", code_name(error.code())}, {"message", error.what()}}; }

void read_all_of(const CheckpointReader& reader, const CheckpointEntry& entry, BytesProgress& progress) {
  reader.check(entry);
  for (const CheckpointEntry& stored : stored_entries(reader, entry)) {
    reader.read_raw(stored);
    progress.add(stored.size);
  }
}

// Shards beside the index that it does not name: of an earlier checkpoint, or of one that was cut short.
std::vector<std::string> unused_files(const CheckpointReader& reader) {
  std::vector<std::string> unused;
  for (const std::string& file : io::checkpoint_shards_on_disk(reader.prefix())) {
    bool used = false;
    for (int shard = 0; shard < std::max(reader.num_shards(), 1) && !used; ++shard) {
      used = reader.shard_path(shard) == file;
    }
    if (!used) unused.push_back(file);
  }
  return unused;
}

}  // namespace

void ckpt_verify(const CkptArguments& arguments) {
  const std::string prefix = checkpoint_prefix(arguments.path);
  std::optional<CheckpointReader> reader;
  try {
    reader.emplace(prefix);
  } catch (const Error& error) {
    if (arguments.json) print_json({{"checkpoint", prefix}, {"ok", false}, {"error", error_json(error)}});
    throw;
  }
  BytesProgress progress(prefix, stored_bytes(*reader));
  std::vector<Damage> damages;
  const auto attempt = [&](const std::string& key, auto step) {
    try {
      step();
    } catch (const Error& error) {
      damages.push_back({key, error});
    }
  };
  for (const CheckpointEntry& entry : reader->entries()) {
    attempt(entry.key, [&] { read_all_of(*reader, entry, progress); });
  }
  const bool graph_is_whole =
      std::none_of(damages.begin(), damages.end(), [](const Damage& d) { return d.key == train::kObjectGraphKey; });
  std::vector<std::string> missing;
  if (graph_is_whole) {
    attempt(train::kObjectGraphKey, [&] {
      if (const std::optional<ObjectGraph> graph = read_object_graph(*reader)) missing = missing_keys(*reader, *graph);
    });
  }
  const std::vector<std::string> unused = unused_files(*reader);
  const bool ok = damages.empty() && missing.empty();
  if (arguments.json) {
    Json json = {{"checkpoint", prefix},
                 {"ok", ok},
                 {"keys", reader->entries().size()},
                 {"bytes", stored_bytes(*reader)},
                 {"damaged", Json::array()},
                 {"missing", missing},
                 {"unused_files", unused}};
    for (const Damage& damage : damages) {
      Json each = {{"key", damage.key}};
      each.update(error_json(damage.error));
      json["damaged"].push_back(each);
    }
    print_json(json);
  } else {
    for (const Damage& damage : damages) fmt::print("DAMAGED {}: {}\n", damage.key, damage.error.what());
    for (const std::string& key : missing) fmt::print("MISSING {}: the object graph names it\n", key);
    for (const std::string& file : unused) fmt::print("unused {}: the index does not name this shard\n", file);
    fmt::print("{}: {}, {} keys, {} bytes\n", prefix, ok ? "ok" : "DAMAGED", reader->entries().size(),
               stored_bytes(*reader));
  }
  if (ok) return;
  const auto without_shard =
      std::count_if(damages.begin(), damages.end(), [](const Damage& d) { return d.error.code() == Code::not_found; });
  throw make_error(Code::data_loss, "[ckpt] {}: {} of {} keys are damaged{}, {} are missing", prefix, damages.size(),
                   reader->entries().size(),
                   without_shard > 0 ? fmt::format(" ({} of them because their file is not there)", without_shard) : "",
                   missing.size());
}

namespace {

std::string dtype_and_shape(const CheckpointEntry& entry) {
  return io::checkpoint_dtype_name(entry.dtype) + " " + shape_text(entry.shape);
}

// Of two values with the same dtype and shape; nothing where they are the same.
std::optional<Json> compare_values(const CheckpointReader& a, const CheckpointEntry& in_a, const CheckpointReader& b,
                                   const CheckpointEntry& in_b) {
  if (in_a.dtype == io::kCheckpointString || in_a.dtype == io::kCheckpointVariant) {
    const std::vector<std::string> x = a.read_strings(in_a), y = b.read_strings(in_b);
    uint64_t elements = 0;
    for (size_t i = 0; i < x.size(); ++i) elements += x[i] != y[i] ? 1 : 0;
    if (elements == 0) return {};
    return Json{{"elements", elements}};
  }
  const std::optional<DType> dtype = element_type(in_a.dtype);
  if (!dtype) {
    if (a.read_raw(in_a) == b.read_raw(in_b)) return {};
    return Json{{"elements", nullptr}};
  }
  const auto values = [](const CheckpointReader& reader, const CheckpointEntry& entry) {
    reader.check(entry);
    std::vector<std::byte> bytes(byte_size(entry));
    reader.read(entry, bytes);
    return bytes;
  };
  const ValueDifference found = difference(*dtype, values(a, in_a), values(b, in_b));
  if (found.elements == 0) return {};
  return Json{{"elements", found.elements}, {"max_abs_difference", number_json(found.largest)}};
}

void print_difference(const Json& each) {
  const std::string key = each["key"];
  if (each.contains("dtypes_and_shapes")) {
    const std::vector<std::string> both = each["dtypes_and_shapes"];
    fmt::print("~ {}: {} in the first, {} in the second\n", key, both[0], both[1]);
  } else if (each.contains("max_abs_difference")) {
    fmt::print("~ {}: {} of {} elements differ, by at most {}\n", key, each["elements"].dump(), each["of"].dump(),
               each["max_abs_difference"].is_string() ? each["max_abs_difference"].get<std::string>()
                                                      : each["max_abs_difference"].dump());
  } else {
    fmt::print("~ {}: the values differ\n", key);
  }
}

}  // namespace

void ckpt_diff(const CkptArguments& arguments) {
  const CheckpointReader a = open_checkpoint(arguments.path), b = open_checkpoint(arguments.other);
  std::vector<std::string> only_a, only_b;
  Json different = Json::array();
  uint64_t same = 0;
  BytesProgress progress(a.prefix(), stored_bytes(a));
  for (const CheckpointEntry& entry : b.entries()) {
    if (a.find(entry.key) == nullptr) only_b.push_back(entry.key);
  }
  for (const CheckpointEntry& entry : a.entries()) {
    progress.add(entry.slices.empty() ? entry.size : byte_size(entry));
    const CheckpointEntry* other = b.find(entry.key);
    if (other == nullptr) {
      only_a.push_back(entry.key);
    } else if (entry.dtype != other->dtype || entry.shape != other->shape) {
      different.push_back(
          {{"key", entry.key}, {"dtypes_and_shapes", {dtype_and_shape(entry), dtype_and_shape(*other)}}});
    } else if (const std::optional<Json> found = compare_values(a, entry, b, *other)) {
      Json each = {{"key", entry.key}};
      each.update(*found);
      each["of"] = element_count(entry);
      different.push_back(each);
    } else {
      ++same;
    }
  }
  const bool equal = only_a.empty() && only_b.empty() && different.empty();
  if (arguments.json) {
    print_json({{"first", a.prefix()},
                {"second", b.prefix()},
                {"equal", equal},
                {"same", same},
                {"only_in_first", only_a},
                {"only_in_second", only_b},
                {"different", different}});
  } else {
    for (const std::string& key : only_a) fmt::print("- {}: only in the first\n", key);
    for (const std::string& key : only_b) fmt::print("+ {}: only in the second\n", key);
    for (const Json& each : different) print_difference(each);
    fmt::print("{} keys are the same, {} differ, {} only in the first, {} only in the second\n", same, different.size(),
               only_a.size(), only_b.size());
  }
  if (!equal) throw ExitStatus{1};
}

}  // namespace runnel::tools
