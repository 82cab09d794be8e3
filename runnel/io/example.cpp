#include "runnel/io/example.h"

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/io/wire.h"

namespace runnel::io {

Feature::Feature() = default;
Feature::Feature(BytesList list) : kind(std::move(list)) {}
Feature::Feature(FloatList list) : kind(std::move(list)) {}
Feature::Feature(Int64List list) : kind(std::move(list)) {}
Feature::Feature(const Feature& other) = default;
Feature::Feature(Feature&& other) noexcept = default;
Feature& Feature::operator=(const Feature& other) = default;
Feature& Feature::operator=(Feature&& other) noexcept = default;
Feature::~Feature() = default;

const BytesList* Feature::bytes_list() const { return std::get_if<BytesList>(&kind); }
const FloatList* Feature::float_list() const { return std::get_if<FloatList>(&kind); }
const Int64List* Feature::int64_list() const { return std::get_if<Int64List>(&kind); }
bool BytesList::operator==(const BytesList& other) const { return value == other.value; }
bool FloatList::operator==(const FloatList& other) const { return value == other.value; }
bool Int64List::operator==(const Int64List& other) const { return value == other.value; }
bool Features::operator==(const Features& other) const { return feature == other.feature; }
bool Example::operator==(const Example& other) const { return features == other.features; }
bool FeatureList::operator==(const FeatureList& other) const { return feature == other.feature; }
bool FeatureLists::operator==(const FeatureLists& other) const { return feature_list == other.feature_list; }
bool SequenceExample::operator==(const SequenceExample& other) const {
  return context == other.context && feature_lists == other.feature_lists;
}
bool Feature::operator==(const Feature& other) const { return kind == other.kind; }
namespace {

using wire::Cursor;
using wire::kBytes;
using wire::tag;

// --- sizes and bytes -------------------------------------------------------------------------------------------------

size_t field_size(size_t body) { return 1 + varint_size(body) + body; }  // field numbers are below 16

size_t list_size(const BytesList& list) {
  size_t size = 0;
  for (const std::string& v : list.value) size += field_size(v.size());
  return size;
}
size_t list_size(const FloatList& list) { return list.value.empty() ? 0 : field_size(4 * list.value.size()); }
size_t packed_size(const Int64List& list) {
  size_t size = 0;
  for (int64_t v : list.value) size += varint_size(static_cast<uint64_t>(v));
  return size;
}
size_t list_size(const Int64List& list) { return list.value.empty() ? 0 : field_size(packed_size(list)); }

size_t feature_size(const Feature& feature) {
  return std::visit(
      [](const auto& list) -> size_t {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(list)>, std::monostate>) {
          return 0;
        } else {
          return field_size(list_size(list));
        }
      },
      feature.kind);
}
size_t list_size(const FeatureList& list) {
  size_t size = 0;
  for (const Feature& f : list.feature) size += field_size(feature_size(f));
  return size;
}

void put_head(std::string& out, uint32_t field, size_t body) {
  out.push_back(static_cast<char>(tag(field, kBytes)));
  append_varint(out, body);
}

void put(std::string& out, const BytesList& list) {
  for (const std::string& v : list.value) {
    put_head(out, 1, v.size());
    out += v;
  }
}
void put(std::string& out, const FloatList& list) {
  if (list.value.empty()) return;
  put_head(out, 1, 4 * list.value.size());
  out.append(reinterpret_cast<const char*>(list.value.data()), 4 * list.value.size());
}
void put(std::string& out, const Int64List& list) {
  if (list.value.empty()) return;
  put_head(out, 1, packed_size(list));
  for (int64_t v : list.value) append_varint(out, static_cast<uint64_t>(v));
}
void put(std::string& out, const Feature& feature) {
  std::visit(
      [&](const auto& list) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(list)>, std::monostate>) {
          put_head(out, static_cast<uint32_t>(feature.kind.index()), list_size(list));
          put(out, list);
        }
      },
      feature.kind);
}
void put(std::string& out, const FeatureList& list) {
  for (const Feature& f : list.feature) {
    put_head(out, 1, feature_size(f));
    put(out, f);
  }
}

size_t body_size(const Feature& f) { return feature_size(f); }
size_t body_size(const FeatureList& l) { return list_size(l); }

template <class Map>
size_t map_size(const Map& map) {
  size_t size = 0;
  for (const auto& [key, value] : map) size += field_size(field_size(key.size()) + field_size(body_size(value)));
  return size;
}
template <class Map>
void put_map(std::string& out, uint32_t field, const Map& map) {
  put_head(out, field, map_size(map));
  for (const auto& [key, value] : map) {
    put_head(out, 1, field_size(key.size()) + field_size(body_size(value)));
    put_head(out, 1, key.size());
    out += key;
    put_head(out, 2, body_size(value));
    put(out, value);
  }
}

// --- parsing ---------------------------------------------------------------------------------------------------------

// Parses nested messages; where_ is the first byte that made no sense.
class Parser {
 public:
  explicit Parser(std::string_view whole) : whole_(whole) {}

  void example(Example& out) {
    each(whole_, [&](uint32_t t, Cursor& c) { return t == tag(1, kBytes) && features(c, out.features); });
  }
  void sequence(SequenceExample& out) {
    each(whole_, [&](uint32_t t, Cursor& c) {
      if (t == tag(1, kBytes)) return features(c, out.context);
      return t == tag(2, kBytes) && feature_lists(c, out.feature_lists);
    });
  }

 private:
  [[noreturn]] void damaged(const char* at) const {
    throw make_error(Code::data_loss, "no valid message: damaged at byte {} of {}", at - whole_.data(), whole_.size());
  }

  // take(tag, cursor) reads a field and returns true, or returns false without moving the cursor to have it skipped.
  template <class Take>
  void each(std::string_view message, Take take) {
    Cursor c(message);
    while (!c.done()) {
      const char* at = c.p;
      uint32_t t = 0;
      if (!c.tag(&t)) damaged(at);
      if (!take(t, c) && !c.skip(t)) damaged(at);
    }
  }
  std::string_view body(Cursor& c) {
    std::string_view text;
    if (!c.bytes(&text)) damaged(c.p);
    return text;
  }

  bool features(Cursor& outer, Features& out) {
    each(body(outer), [&](uint32_t t, Cursor& c) {
      return t == tag(1, kBytes) && entry<Feature>(c, out.feature, [&](Cursor& v, Feature& f) { feature(body(v), f); });
    });
    return true;
  }
  bool feature_lists(Cursor& outer, FeatureLists& out) {
    each(body(outer), [&](uint32_t t, Cursor& c) {
      return t == tag(1, kBytes) && entry<FeatureList>(c, out.feature_list, [&](Cursor& v, FeatureList& list) {
               feature_list(body(v), list);
             });
    });
    return true;
  }
  template <class Value, class Map, class Read>
  bool entry(Cursor& outer, Map& map, Read read) {
    std::string key;
    Value value;
    each(body(outer), [&](uint32_t t, Cursor& c) {
      if (t == tag(1, kBytes)) return key = body(c), true;
      return t == tag(2, kBytes) && (read(c, value), true);
    });
    map.insert_or_assign(std::move(key), std::move(value));  // the last one counts
    return true;
  }
  void feature_list(std::string_view message, FeatureList& out) {
    each(message, [&](uint32_t t, Cursor& c) {
      if (t != tag(1, kBytes)) return false;
      feature(body(c), out.feature.emplace_back());
      return true;
    });
  }

  // Lists of the same kind are merged; one of another kind replaces what was there.
  template <class List>
  List& list_of(Feature& feature) {
    if (!std::holds_alternative<List>(feature.kind)) feature.kind = List{};
    return std::get<List>(feature.kind);
  }
  template <class List, class Read>
  void numbers(std::string_view message, Feature& out, Read read) {
    auto& values = list_of<List>(out).value;
    const int64_t n = read(message, nullptr, 0);
    if (n < 0) damaged(message.data());
    const size_t had = values.size();
    values.resize(had + static_cast<size_t>(n));
    read(message, values.data() + had, n);
  }
  void feature(std::string_view message, Feature& out) {
    each(message, [&](uint32_t t, Cursor& c) {
      if (t == tag(1, kBytes)) {
        const std::string_view list = body(c);
        auto& values = list_of<BytesList>(out).value;
        if (!wire::read_bytes(list, [&](std::string_view v) { values.emplace_back(v); })) damaged(list.data());
      } else if (t == tag(2, kBytes)) {
        numbers<FloatList>(body(c), out, wire::read_floats);
      } else if (t == tag(3, kBytes)) {
        numbers<Int64List>(body(c), out, wire::read_int64s);
      } else {
        return false;
      }
      return true;
    });
  }

  std::string_view whole_;
};

}  // namespace

std::string Example::serialize() const {
  std::string out;
  out.reserve(field_size(map_size(features.feature)));
  put_map(out, 1, features.feature);
  return out;
}

Example Example::parse(std::string_view bytes, SourceSite where) {
  return at_caller(where, [&] {
    Example out;
    Parser(bytes).example(out);
    return out;
  });
}

std::string SequenceExample::serialize() const {
  std::string out;
  if (!context.feature.empty()) put_map(out, 1, context.feature);
  if (!feature_lists.feature_list.empty()) put_map(out, 2, feature_lists.feature_list);
  return out;
}

SequenceExample SequenceExample::parse(std::string_view bytes, SourceSite where) {
  return at_caller(where, [&] {
    SequenceExample out;
    Parser(bytes).sequence(out);
    return out;
  });
}

}  // namespace runnel::io
