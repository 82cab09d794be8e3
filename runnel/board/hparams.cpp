#include "runnel/board/hparams.h"

#include <bit>

#include "runnel/base/varint.h"
#include "runnel/io/wire.h"

namespace runnel::board {
namespace {

using io::wire::Cursor;

// Walks over a message: take(field, bytes) gets fields of bytes, number(field, bits) all others. False: damaged.
template <class TakeBytes, class TakeNumber>
bool walk(std::string_view message, TakeBytes take, TakeNumber number) {
  Cursor c(message);
  while (!c.done()) {
    uint32_t t = 0;
    uint64_t bits = 0;
    std::string_view bytes;
    if (!c.tag(&t)) return false;
    switch (t & 7) {
      case io::wire::kBytes:
        if (!c.bytes(&bytes) || !take(t >> 3, bytes)) return false;
        break;
      case io::wire::kVarint:
        if (!c.varint(&bits)) return false;
        number(t >> 3, bits);
        break;
      case io::wire::kFixed64: {
        const char* next = get_fixed64(c.p, c.end, &bits);
        if (next == nullptr) return false;
        c.p = next;
        number(t >> 3, bits);
        break;
      }
      default:
        if (!c.skip(t)) return false;
    }
  }
  return true;
}

constexpr auto no_bytes = [](uint32_t, std::string_view) { return true; };
constexpr auto no_number = [](uint32_t, uint64_t) {};

bool parse_value(std::string_view message, HParamsValue* value) {
  return walk(
      message,
      [&](uint32_t field, std::string_view bytes) {
        if (field == 3) *value = std::string(bytes);
        return true;
      },
      [&](uint32_t field, uint64_t bits) {
        if (field == 2) *value = std::bit_cast<double>(bits);
        if (field == 4) *value = bits != 0;
      });
}

bool parse_hparam(std::string_view message, HParamsContent::Named* named) {
  return walk(
      message,
      [&](uint32_t field, std::string_view bytes) {
        if (field == 1) named->name = bytes;
        if (field == 2) named->display_name = bytes;
        if (field == 3) named->description = bytes;
        return true;
      },
      no_number);
}

bool parse_metric(std::string_view message, HParamsContent::Named* named) {
  const auto take_name = [&](uint32_t field, std::string_view bytes) {
    if (field == 1) named->group = bytes;
    if (field == 2) named->name = bytes;
    return true;
  };
  return walk(
      message,
      [&](uint32_t field, std::string_view bytes) {
        if (field == 3) named->display_name = bytes;
        if (field == 4) named->description = bytes;
        return field != 1 || walk(bytes, take_name, no_number);
      },
      no_number);
}

bool parse_experiment(std::string_view message, HParamsContent* content) {
  content->is_experiment = true;
  return walk(
      message,
      [&](uint32_t field, std::string_view bytes) {
        if (field == 4) return parse_hparam(bytes, &content->hparams.emplace_back());
        if (field == 5) return parse_metric(bytes, &content->metrics.emplace_back());
        return true;
      },
      no_number);
}

bool parse_start(std::string_view message, HParamsContent* content) {
  content->is_start = true;
  return walk(
      message,
      [&](uint32_t field, std::string_view bytes) {
        if (field == 4) content->group = bytes;
        if (field != 1) return true;
        std::string name;
        HParamsValue value;
        const auto take_entry = [&](uint32_t part, std::string_view entry) {
          if (part == 1) name = entry;
          return part != 2 || parse_value(entry, &value);
        };
        if (!walk(bytes, take_entry, no_number)) return false;
        content->values[name] = value;
        return true;
      },
      [&](uint32_t field, uint64_t bits) {
        if (field == 5) content->start = std::bit_cast<double>(bits);
      });
}

bool parse_end(std::string_view message, HParamsContent* content) {
  content->is_end = true;
  return walk(message, no_bytes, [&](uint32_t field, uint64_t bits) {
    if (field == 1) content->status = static_cast<int64_t>(bits);
    if (field == 2) content->end = std::bit_cast<double>(bits);
  });
}

}  // namespace

std::optional<HParamsContent> parse_hparams(std::string_view message) {
  HParamsContent content;
  const bool whole = walk(
      message,
      [&](uint32_t field, std::string_view bytes) {
        if (field == 2) return parse_experiment(bytes, &content);
        if (field == 3) return parse_start(bytes, &content);
        if (field == 4) return parse_end(bytes, &content);
        return true;
      },
      no_number);
  if (!whole) return std::nullopt;
  return content;
}

}  // namespace runnel::board
