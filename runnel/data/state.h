#pragma once

// Where an iterator stands, as bytes: integers and texts one after the other.
#include <cstdint>
#include <string>
#include <string_view>

#include "runnel/base/error.h"
#include "runnel/base/varint.h"

namespace runnel::data {

class StateWriter {
 public:
  void integer(uint64_t v) { append_varint(bytes_, v); }
  void text(std::string_view v) {
    integer(v.size());
    bytes_.append(v);
  }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : p_(bytes.data()), end_(bytes.data() + bytes.size()) {}
  uint64_t integer() {
    uint64_t v = 0;
    p_ = get_varint(p_, end_, &v);
    if (p_ == nullptr) fail();
    return v;
  }
  // A number of elements or the like: none is as large as what damaged bytes may say.
  static constexpr int64_t kMost = int64_t{1} << 48;
  int64_t count(int64_t most = kMost) {
    const uint64_t v = integer();
    if (v > static_cast<uint64_t>(most)) fail();
    return static_cast<int64_t>(v);
  }
  std::string_view text() {
    const uint64_t n = integer();
    if (n > static_cast<uint64_t>(end_ - p_)) fail();
    const std::string_view v(p_, n);
    p_ += n;
    return v;
  }
  bool at_end() const { return p_ == end_; }

  [[noreturn]] static void fail() {
    throw Error(Code::data_loss, "[restore] the saved state of an iterator is cut short or damaged");
  }

 private:
  const char* p_;
  const char* end_;
};

}  // namespace runnel::data
