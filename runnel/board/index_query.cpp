// What others ask an Index.
#include <algorithm>

#include "runnel/base/varint.h"
#include "runnel/board/index.h"
#include "runnel/board/index_parts.h"
#include "runnel/board/values.h"
#include "runnel/io/event_reader.h"

namespace runnel::board {
namespace {

SeriesInfo series_info(const Index::Series& series) {
  SeriesInfo info{.id = series.id, .run = series.key.first, .changed = series.changed};
  info.tag = series.parts.front().second->tag;
  info.tag.tag = series.key.second;
  for (const auto& [file, part] : series.parts) {
    if (part->count == 0) continue;
    if (info.count == 0 || part->first.wall < info.first.wall) info.first = part->first;
    if (info.count == 0 || part->last.wall >= info.last.wall) info.last = part->last;
    info.count += part->count;
    info.not_finite += part->not_finite;
  }
  return info;
}

Block block_of(const Index::File& file, const IndexPart::Mark& mark) {
  const bool is_last = mark.chunk + 1 == file.chunks.size();
  return {.file = file.id,
          .begin = file.chunks[mark.chunk],
          .end = is_last ? file.read_to : file.chunks[mark.chunk + 1],
          .count = mark.count,
          .low_step = mark.low_step,
          .high_step = mark.high_step};
}

}  // namespace

uint64_t Index::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

uint64_t Index::wait(uint64_t seen, std::chrono::milliseconds time) const {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, time, [&] { return generation_ > seen || stopped_; });
  return generation_;
}

Listing Index::list(uint64_t since) const {
  const std::lock_guard lock(mutex_);
  Listing listing{.generation = generation_, .loading = loading_};
  listing.whole = since < removal_ || since == 0 || since > generation_;
  for (const auto& [key, series] : series_) {
    if (listing.runs.empty() || listing.runs.back() != key.first) listing.runs.push_back(key.first);
    if (listing.whole || series->changed > since) listing.series.push_back(series_info(*series));
  }
  listing.files = files_.size();
  for (const auto& [path, file] : files_) {
    const auto folder = listing.folders.emplace(file->run, file->begun).first;
    folder->second = std::min(folder->second, file->begun);
    listing.bytes += file->size;
    listing.bytes_read += file->read_to;
    if (!file->complaint.empty()) listing.complaints.push_back(file->complaint);
  }
  for (const auto& [path, complaint] : folder_complaints_) {
    if (!complaint.empty()) listing.complaints.push_back(complaint);
  }
  return listing;
}

const Index::Series* Index::series(uint32_t id) const {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : at->second;
}

std::optional<SeriesInfo> Index::find(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const Series* s = series(id);
  if (s == nullptr) return std::nullopt;
  return series_info(*s);
}

std::optional<SeriesInfo> Index::find(const std::string& run, const std::string& tag) const {
  const std::lock_guard lock(mutex_);
  const auto at = series_.find(Key(run, tag));
  if (at == series_.end()) return std::nullopt;
  return series_info(*at->second);
}

std::optional<LineParts> Index::line(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const Series* s = series(id);
  if (s == nullptr) return std::nullopt;
  LineParts parts{.info = series_info(*s), .parts = {}};
  for (const auto& [file, part] : s->parts) {
    if (part->line.count() == 0) continue;
    LineParts::Part& out = parts.parts.emplace_back();
    part->line.append_to(out.points);
    out.stride = part->line.stride();
    for (const IndexPart::Mark& mark : part->marks) out.blocks.push_back(block_of(*file, mark));
  }
  return parts;
}

std::vector<ValuePlace> Index::places(uint32_t id) const {
  std::vector<ValuePlace> places;
  {
    const std::lock_guard lock(mutex_);
    const Series* s = series(id);
    if (s == nullptr) return places;
    for (const auto& [file, part] : s->parts) {
      for (const IndexPart::Entry& e : part->entries) places.push_back({e.step, e.wall, file->id, e.offset});
    }
  }
  const auto earlier = [](const ValuePlace& a, const ValuePlace& b) { return a.wall < b.wall; };
  if (!std::ranges::is_sorted(places, earlier)) std::ranges::stable_sort(places, earlier);
  return places;
}

std::string Index::path_of(uint32_t file) const {
  const std::lock_guard lock(mutex_);
  const auto at = paths_.find(file);
  return at == paths_.end() ? "" : at->second;
}

std::vector<LinePoint> Index::read_block(const Block& block, const std::string& tag) const {
  std::vector<LinePoint> points;
  const std::string path = path_of(block.file);
  if (path.empty() || block.end <= block.begin) return points;
  points.reserve(block.count);
  try {
    const std::string bytes = read_range(*env_.open_random(path), block.begin, block.end - block.begin);
    io::EventReader reader(as_bytes(bytes), path, SourceSite());
    io::Event event;
    while (true) {
      const io::EventReader::Status status = reader.read(&event);
      if (status == io::EventReader::Status::damaged && reader.skip_damaged()) continue;
      if (status != io::EventReader::Status::event) break;
      io::visit_event_points(event, [&](const io::EventPoint& point) {
        LinePoint found{.step = event.step, .wall = event.wall_time};
        if (point.tag == tag && point.value != nullptr && read_scalar(*point.value, &found.value)) {
          points.push_back(found);
        }
      });
    }
  } catch (const Error& e) {
    if (e.code() != Code::not_found) throw;  // gone: the next look drops it
  }
  return points;
}

bool Index::read_value(uint32_t file, uint64_t offset, const std::string& tag,
                       FunctionRef<void(const io::EventPoint&)> take) const {
  const std::string path = path_of(file);
  if (path.empty()) return false;
  std::string bytes;
  try {
    const std::unique_ptr<RandomAccessFile> opened = env_.open_random(path);
    constexpr uint64_t frame = io::kRecordHeader + io::kRecordFooter;
    const uint64_t size = opened->size();
    if (size < frame || offset > size - frame) return false;
    const std::string header = read_range(*opened, offset, io::kRecordHeader);
    if (header.size() < io::kRecordHeader) return false;
    const uint64_t length = load_fixed64(header.data());
    if (length > kLargestRecord || length > size - frame - offset) return false;
    bytes = read_range(*opened, offset, length + frame);
  } catch (const Error& e) {
    if (e.code() != Code::not_found) throw;
    return false;
  }
  io::EventReader reader(as_bytes(bytes), path, SourceSite());
  io::Event event;
  if (reader.read(&event) != io::EventReader::Status::event) return false;
  bool found = false;
  io::visit_event_points(event, [&](const io::EventPoint& point) {
    if (found || point.tag != tag) return;
    found = true;
    take(point);
  });
  return found;
}

}  // namespace runnel::board
