#include "runnel/io/origin.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "runnel/base/format.h"
#include "runnel/base/varint.h"

namespace runnel::io {
namespace {

struct Origin {
  ByteSpan range;
  std::string path;
  std::optional<RecordPosition> records;
  std::optional<uint64_t> first_line;
  // A record that was found, from where the next search goes on: many of one file take one walk over it.
  size_t known_at = 0;
  uint64_t known_record = 0;
};

struct Origins {
  std::mutex mutex;
  std::map<const std::byte*, Origin> by_begin;
};
Origins& origins() {
  static auto* const all = new Origins;  // outlives every thread that still holds bytes
  return *all;
}

// The record of the range that the byte stands in, as [where it begins, its number in the range].
std::optional<std::pair<size_t, uint64_t>> record_at(Origin& origin, size_t byte) {
  size_t at = 0;
  uint64_t record = 0;
  if (origin.known_at <= byte) at = origin.known_at, record = origin.known_record;
  while (origin.range.size() - at >= kRecordHeader + kRecordFooter) {
    const uint64_t length = load_fixed64(origin.range.data() + at);
    if (length > origin.range.size() - at - kRecordHeader - kRecordFooter) return std::nullopt;
    const size_t next = at + kRecordHeader + static_cast<size_t>(length) + kRecordFooter;
    if (byte < next) {
      origin.known_at = at;
      origin.known_record = record;
      return std::pair(at, record);
    }
    at = next;
    ++record;
  }
  return std::nullopt;
}

class MarkedFile : public MappedFile {
 public:
  template <class What>
  MarkedFile(std::unique_ptr<MappedFile> file, const std::string& path, const What& what)
      : file_(std::move(file)), mark_(file_->bytes(), path, what) {}
  ByteSpan bytes() const override { return file_->bytes(); }

 private:
  std::unique_ptr<MappedFile> file_;
  OriginMark mark_;
};

}  // namespace

std::shared_ptr<MappedFile> map_records(const std::string& path, Env& env) {
  return std::make_shared<MarkedFile>(env.map(path), path, RecordPosition());
}

std::shared_ptr<MappedFile> map_text(const std::string& path, Env& env) {
  return std::make_shared<MarkedFile>(env.map(path), path, uint64_t{1});
}

OriginMark::OriginMark(ByteSpan range, std::string path, std::optional<RecordPosition> records)
    : begin_(range.empty() ? nullptr : range.data()) {
  if (begin_ == nullptr) return;
  const std::lock_guard lock(origins().mutex);
  origins().by_begin.insert_or_assign(begin_, Origin{range, std::move(path), records, {}});
}

OriginMark::OriginMark(ByteSpan range, std::string path, uint64_t first_line)
    : begin_(range.empty() ? nullptr : range.data()) {
  if (begin_ == nullptr) return;
  const std::lock_guard lock(origins().mutex);
  origins().by_begin.insert_or_assign(begin_, Origin{range, std::move(path), {}, first_line});
}

OriginMark::~OriginMark() {
  if (begin_ == nullptr) return;
  const std::lock_guard lock(origins().mutex);
  origins().by_begin.erase(begin_);
}

std::string origin_of(std::string_view bytes) {
  const auto* at = reinterpret_cast<const std::byte*>(bytes.data());
  const std::lock_guard lock(origins().mutex);
  auto it = origins().by_begin.upper_bound(at);
  if (it == origins().by_begin.begin()) return "";
  Origin& origin = (--it)->second;
  const auto offset = static_cast<size_t>(at - origin.range.data());
  if (offset >= origin.range.size()) return "";
  if (origin.first_line) {
    const auto lines = std::count(origin.range.begin(), origin.range.begin() + static_cast<std::ptrdiff_t>(offset),
                                  static_cast<std::byte>('\n'));
    return fmt::format("{}, line {}", origin.path, *origin.first_line + static_cast<uint64_t>(lines));
  }
  if (!origin.records) return origin.path;
  if (const auto found = record_at(origin, offset)) {
    return fmt::format("{}, record {} at byte {}", origin.path, origin.records->record + found->second,
                       origin.records->offset + found->first);
  }
  return fmt::format("{}, byte {}", origin.path, origin.records->offset + offset);
}

}  // namespace runnel::io
