#include "runnel/io/tar.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "runnel/base/format.h"
#include "runnel/io/file_frame.h"

namespace runnel::io {
namespace {

constexpr size_t kBlock = 512;

// A field of a header: text up to the first zero byte.
std::string_view tar_field(std::string_view header, size_t offset, size_t size) {
  const std::string_view field = header.substr(offset, size);
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

// Octal digits, with spaces before or after them; -1 where there are none.
int64_t octal(std::string_view field) {
  int64_t value = 0;
  bool digits = false;
  for (char c : field) {
    if (c == ' ' && !digits) continue;
    if (c < '0' || c > '7') break;
    value = value * 8 + (c - '0');
    digits = true;
  }
  return digits ? value : -1;
}

// The sum of all bytes, with spaces in the place of the sum itself.
int64_t checksum(std::string_view header) {
  int64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<uint8_t>(header[i]);
  return sum;
}

// The path that a pax header gives the member after it: records of "LENGTH KEY=VALUE\n".
std::string pax_path(std::string_view records) {
  std::string path;
  size_t length = 0;
  while (std::from_chars(records.data(), records.data() + records.size(), length).ec == std::errc() && length > 0 &&
         length <= records.size()) {
    const std::string_view record = records.substr(0, length - 1);
    const size_t key = std::min(record.find(' '), record.size() - 1) + 1;
    if (record.substr(key).starts_with("path=")) path = record.substr(key + 5);
    records.remove_prefix(length);
  }
  return path;
}

}  // namespace

std::vector<TarMember> tar_members(ByteSpan archive, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(archive.data()), archive.size());
  std::vector<TarMember> members;
  std::string long_name;  // a member of its own, before the one it names
  for (size_t at = 0; at < text.size();) {
    auto bad = [&](const std::string& what) {
      return make_error(Code::data_loss, "[tar] {}: {} at byte {}", name, what, at).inside(file_frame(name, at));
    };
    if (text.size() - at < kBlock) throw bad("the file ends inside a header");
    const std::string_view header = text.substr(at, kBlock);
    if (header.find_first_not_of('\0') == std::string_view::npos) return members;
    if (octal(header.substr(148, 8)) != checksum(header)) throw bad("not a tar file: the header's checksum is wrong");
    const int64_t size = octal(header.substr(124, 12));
    if (size < 0) throw bad("no size");
    const size_t room = text.size() - at - kBlock;
    if (static_cast<uint64_t>(size) > room) {
      throw bad(fmt::format("a member of {} bytes, but only {} follow", size, room));
    }
    const ByteSpan bytes = archive.subspan(at + kBlock, static_cast<size_t>(size));
    const char type = header[156];
    if (type == 'L') {
      long_name = tar_field(text, at + kBlock, bytes.size());
    } else if (type == 'x') {
      long_name = pax_path(text.substr(at + kBlock, bytes.size()));
    } else if (type == '0' || type == '\0') {
      std::string path(tar_field(header, 0, 100));
      const bool ustar = header.substr(257, 6) == std::string_view("ustar\0", 6);
      const std::string_view prefix = ustar ? tar_field(header, 345, 155) : std::string_view();
      if (!prefix.empty()) path = fmt::format("{}/{}", prefix, path);
      members.push_back({long_name.empty() ? path : long_name, bytes});
      long_name.clear();
    }
    at += kBlock + std::min(room, (static_cast<size_t>(size) + kBlock - 1) / kBlock * kBlock);
  }
  return members;
}

}  // namespace runnel::io
