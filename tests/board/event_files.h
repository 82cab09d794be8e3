#pragma once

// Event files for tests, written byte by byte, so that a test can stop in the middle of a record.
#include <bit>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "runnel/base/crc32c.h"
#include "runnel/base/varint.h"
#include "runnel/io/event.h"

namespace runnel::test {

inline std::string framed(std::string_view record) {
  std::string out;
  append_fixed64(out, record.size());
  append_fixed32(out, crc32c_mask(crc32c(out.data(), 8)));
  out += record;
  append_fixed32(out, crc32c_mask(crc32c(record.data(), record.size())));
  return out;
}

inline std::string version_record() {
  std::string event;
  io::append_version_event(event, 1);
  return framed(event);
}

inline std::string plugin_metadata(std::string_view plugin, std::string_view content = "") {
  std::string data, metadata;
  io::append_field(data, 1, plugin);
  if (!content.empty()) io::append_field(data, 2, content);
  io::append_field(metadata, 1, std::string_view(data));
  return metadata;
}

inline std::string tensor_record(int64_t step, double wall, std::string_view tag, std::string_view plugin,
                                 std::string_view tensor) {
  std::string event;
  io::append_tensor_event(event, wall, step, tag, tensor, plugin_metadata(plugin));
  return framed(event);
}

inline std::string scalar_record(int64_t step, float value, std::string_view tag = "loss", double wall = -1) {
  std::string tensor("\x08\x01\x12\x00\x22\x04", 6);
  append_fixed32(tensor, std::bit_cast<uint32_t>(value));
  return tensor_record(step, wall < 0 ? 1000 + static_cast<double>(step) : wall, tag, "scalars", tensor);
}

// A tensor of strings, rank 1.
inline std::string text_tensor(const std::vector<std::string>& texts) {
  std::string size, shape, tensor("\x08\x07", 2);
  io::append_varint_field(size, 1, texts.size());
  io::append_field(shape, 2, std::string_view(size));
  io::append_field(tensor, 2, std::string_view(shape));
  for (const std::string& text : texts) io::append_field(tensor, 8, std::string_view(text));
  return tensor;
}

inline std::string image_record(int64_t step, const std::string& file, std::string_view tag = "image") {
  return tensor_record(step, 1000 + static_cast<double>(step), tag, "images", text_tensor({"3", "2", file}));
}

inline void append_file(const std::string& path, std::string_view bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::app).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline void write_new_file(const std::string& path, std::string_view bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace runnel::test
