#pragma once

#include <compare>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runnel/base/export.h"

namespace runnel {

// One element of a string tensor: a range of reference-counted bytes. Copies and substrings share the bytes;
// the range may point into anything its owner keeps alive (a mapped file, a record).
class Bytes {
 public:
  Bytes() = default;
  RUNNEL_API Bytes(std::string text);  // NOLINT: implicit, like std::string_view from std::string
  Bytes(std::string_view text) : Bytes(std::string(text)) {}  // NOLINT
  Bytes(const char* text) : Bytes(std::string(text)) {}       // NOLINT
  Bytes(std::shared_ptr<const void> owner, std::string_view range) : owner_(std::move(owner)), view_(range) {}

  std::string_view view() const { return view_; }
  operator std::string_view() const { return view_; }  // NOLINT
  std::string str() const { return std::string(view_); }
  size_t size() const { return view_.size(); }
  Bytes substr(size_t begin, size_t length) const { return {owner_, view_.substr(begin, length)}; }

  friend bool operator==(const Bytes& a, const Bytes& b) { return a.view_ == b.view_; }
  friend auto operator<=>(const Bytes& a, const Bytes& b) { return a.view_ <=> b.view_; }

 private:
  std::shared_ptr<const void> owner_;
  std::string_view view_;
};

}  // namespace runnel
