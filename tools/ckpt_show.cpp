// runnel ckpt ls, cat.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "tools/ckpt.h"
#include "tools/ckpt_files.h"
#include "tools/ckpt_values.h"

namespace runnel::tools {
namespace {

using io::CheckpointEntry;
using io::CheckpointReader;

constexpr const char* kValueEnd = "/.ATTRIBUTES/VARIABLE_VALUE";

std::string slice_text(const io::CheckpointSlice& slice) {
  std::vector<std::string> extents;
  for (const io::CheckpointExtent& e : slice) {
    extents.push_back(e.length < 0 ? "-" : fmt::format("{},{}", e.start, e.length));
  }
  return fmt::format("{}", fmt::join(extents, ":"));
}

Json place_json(const CheckpointEntry& entry) {
  return {{"shard", entry.shard}, {"offset", entry.offset}, {"size", entry.size}};
}

Json entry_json(const CheckpointReader& reader, const CheckpointEntry& entry) {
  Json json = {{"key", entry.key}, {"dtype", io::checkpoint_dtype_name(entry.dtype)}, {"shape", entry.shape}};
  if (entry.slices.empty()) {
    json.update(place_json(entry));
    return json;
  }
  json.update({{"shard", nullptr}, {"offset", nullptr}, {"size", byte_size(entry)}, {"parts", Json::array()}});
  const std::vector<CheckpointEntry> parts = reader.parts(entry);
  for (size_t i = 0; i < parts.size(); ++i) {
    Json part = {{"slice", slice_text(entry.slices[i])}, {"shape", parts[i].shape}};
    part.update(place_json(parts[i]));
    json["parts"].push_back(part);
  }
  return json;
}

struct Row {
  std::string key, dtype, shape, shard, offset, size;
};

Row row_of(const std::string& key, const CheckpointEntry& entry) {
  return {key,
          io::checkpoint_dtype_name(entry.dtype),
          shape_text(entry.shape),
          std::to_string(entry.shard),
          std::to_string(entry.offset),
          std::to_string(entry.size)};
}

void print_rows(const std::vector<Row>& rows) {
  Row width;
  const auto widen = [](std::string& w, const std::string& cell) {
    if (cell.size() > w.size()) w.assign(cell.size(), ' ');
  };
  for (const Row& row : rows) {
    widen(width.dtype, row.dtype);
    widen(width.shape, row.shape);
    widen(width.shard, row.shard);
    widen(width.offset, row.offset);
    widen(width.size, row.size);
  }
  for (const Row& r : rows) {
    fmt::print("{:<{}}  {:<{}}  {:>{}}  {:>{}}  {:>{}}  {}\n", r.dtype, width.dtype.size(), r.shape, width.shape.size(),
               r.shard, width.shard.size(), r.offset, width.offset.size(), r.size, width.size.size(), r.key);
  }
}

const CheckpointEntry& named_entry(const CheckpointReader& reader, const std::string& key) {
  if (const CheckpointEntry* entry = reader.find(key)) return *entry;
  if (const CheckpointEntry* entry = reader.find(key + kValueEnd)) return *entry;
  return reader.entry(key);
}

void write_out(const std::string& file, ByteSpan bytes) {
  if (file == "-") {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  } else {
    Env::posix().write_file(file, bytes);
  }
}

void cat_strings(const CheckpointReader& reader, const CheckpointEntry& entry, const CkptArguments& arguments) {
  if (!arguments.npy.empty()) {
    throw make_error(Code::unimplemented, "[ckpt] '{}' is a tensor of {}: NumPy's files hold numbers; leave out --npy",
                     entry.key, io::checkpoint_dtype_name(entry.dtype));
  }
  const std::vector<std::string> strings = reader.read_strings(entry);
  if (!arguments.json) {
    fmt::print("{}\n", strings_text(entry.shape, strings));
    return;
  }
  Json json = entry_json(reader, entry);
  json["values"] = Json::array();
  for (const std::string& each : strings) json["values"].push_back(escaped(each));
  print_json(json);
}

}  // namespace

void ckpt_ls(const CkptArguments& arguments) {
  const CheckpointReader reader = open_checkpoint(arguments.path);
  if (arguments.json) {
    for (const CheckpointEntry& entry : reader.entries()) print_json(entry_json(reader, entry));
    return;
  }
  std::vector<Row> rows{{"KEY", "DTYPE", "SHAPE", "SHARD", "OFFSET", "BYTES"}};
  for (const CheckpointEntry& entry : reader.entries()) {
    if (entry.slices.empty()) {
      rows.push_back(row_of(entry.key, entry));
      continue;
    }
    const std::vector<CheckpointEntry> parts = reader.parts(entry);
    for (size_t i = 0; i < parts.size(); ++i) {
      rows.push_back(row_of(fmt::format("{} (part {})", entry.key, slice_text(entry.slices[i])), parts[i]));
    }
  }
  print_rows(rows);
  fmt::print("{}: {} keys, {} bytes, {} shard{}\n", reader.prefix(), reader.entries().size(), stored_bytes(reader),
             reader.num_shards(), reader.num_shards() == 1 ? "" : "s");
}

void ckpt_cat(const CkptArguments& arguments) {
  const CheckpointReader reader = open_checkpoint(arguments.path);
  const CheckpointEntry& entry = named_entry(reader, arguments.key);
  if (entry.dtype == io::kCheckpointString || entry.dtype == io::kCheckpointVariant) {
    return cat_strings(reader, entry, arguments);
  }
  const std::optional<DType> dtype = element_type(entry.dtype);
  if (!dtype) {
    throw make_error(Code::unimplemented, "[ckpt] '{}' is a tensor of {}, whose elements are not known here", entry.key,
                     io::checkpoint_dtype_name(entry.dtype));
  }
  reader.check(entry);
  std::vector<std::byte> bytes(byte_size(entry));
  reader.read(entry, bytes);
  if (!arguments.npy.empty()) {
    write_out(arguments.npy, npy_bytes(*dtype, entry.shape, bytes));
  } else if (arguments.json) {
    Json json = entry_json(reader, entry);
    json["values"] = values_json(*dtype, bytes);
    print_json(json);
  } else {
    fmt::print("{}\n", values_text(*dtype, entry.shape, bytes));
  }
}

}  // namespace runnel::tools
