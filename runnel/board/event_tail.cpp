#include "runnel/board/event_tail.h"

#include <algorithm>
#include <utility>

#include "runnel/base/crc32c.h"
#include "runnel/base/format.h"
#include "runnel/base/varint.h"
#include "runnel/board/values.h"
#include "runnel/io/event_point.h"
#include "runnel/io/event_reader.h"

namespace runnel::board {
namespace {

constexpr uint64_t kWindow = uint64_t{1} << 20;
constexpr size_t kHead = 64, kLastBytes = 16;
constexpr uint64_t kFrame = io::kRecordHeader + io::kRecordFooter;

TagInfo tag_info(const io::EventPoint& point) {
  TagInfo info{.tag = std::string(point.tag), .plugin = std::string(io::plugin_of(point))};
  io::EventMetadata metadata;
  if (point.value != nullptr && io::parse_event_metadata(point.value->metadata, &metadata)) {
    info.plugin_content = metadata.plugin_content;
    info.display_name = metadata.display_name;
    info.description = metadata.description;
  }
  // As TensorBoard has it: values of TensorFlow 1 are called like their tags.
  const bool old = point.value != nullptr && point.value->kind != io::ValueKind::tensor;
  if (old && info.display_name.empty()) info.display_name = info.tag;
  return info;
}

}  // namespace

std::string read_range(const RandomAccessFile& file, uint64_t offset, uint64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  bytes.resize(file.read(offset, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}));
  return bytes;
}

EventTail::EventTail(std::string path, Env& env) : path_(std::move(path)), env_(env) {}

bool EventTail::has_changed() {
  const bool due = std::exchange(due_, true);
  const FileInfo info = env_.stat(path_);
  if (!due && info.size == size_ && info.modified_ns == modified_ns_) {
    due_ = false;
    return false;
  }
  size_ = info.size;
  modified_ns_ = info.modified_ns;
  stuck_ = false;
  return true;
}

// Does what was read still stand where it stood?
bool EventTail::continues(const RandomAccessFile& file) const {
  if (position_ == 0) return true;
  return size_ >= position_ && read_range(file, 0, head_.size()) == head_ &&
         read_range(file, position_ - last_bytes_.size(), last_bytes_.size()) == last_bytes_;
}

void EventTail::forget() {
  restarted_ = true;
  due_ = true;
  position_ = 0;
  tags_.clear();
  scalar_.clear();
  complaint_.clear();
}

void EventTail::fill_window(const RandomAccessFile& file, uint64_t size) {
  window_.resize(static_cast<size_t>(size));
  window_.resize(file.read(position_, {reinterpret_cast<std::byte*>(window_.data()), window_.size()}));
}

void EventTail::complain(const std::string& what, uint64_t offset) {
  // Of the reader's guesses what else a file may be only those at its beginning mean anything.
  const std::string said = offset == 0 ? what : what.substr(0, what.find(';'));
  complaint_ = fmt::format("{}: at byte {}: {}", path_, offset, said);
}

bool EventTail::read(Batch& batch) {
  batch.clear();
  due_ = !stuck_;  // and until the end of the file is reached without an exception
  if (stuck_) return false;
  const std::unique_ptr<RandomAccessFile> file = env_.open_random(path_);
  size_ = file->size();
  if (!continues(*file)) forget();
  fill_window(*file, std::min(kWindow, size_ - position_));
  // A record that is larger than the window: its length has a checksum of its own.
  if (window_.size() >= io::kRecordHeader) {
    const uint64_t length = load_fixed64(window_.data());
    const uint64_t left = size_ - position_;
    const bool trusted =
        crc32c_mask(crc32c(window_.data(), sizeof length)) == load_fixed32(window_.data() + sizeof length);
    if (trusted && left > kFrame && length <= left - kFrame && length + kFrame > window_.size()) {
      if (length > kLargestRecord) {
        complain(fmt::format("a record of {} bytes is left out, for it is larger than {}", length, kLargestRecord),
                 position_);
        const uint64_t behind = position_ + length + kFrame;
        last_bytes_ = read_range(*file, behind - kLastBytes, kLastBytes);
        position_ = behind;
        batch.restarted = std::exchange(restarted_, false);
        batch.end = position_;
        return true;
      }
      fill_window(*file, length + kFrame);
    }
  }
  try {
    due_ = take_window(batch);
  } catch (...) {
    forget();  // tags may be known here that the caller never heard of
    throw;
  }
  return due_;
}

bool EventTail::take_window(Batch& batch) {
  io::EventReader reader(as_bytes(window_), path_, SourceSite());
  io::Event event;
  bool more = true;
  while (more) {
    const uint64_t offset = position_ + reader.position().offset;
    switch (reader.read(&event)) {
      case io::EventReader::Status::event:
        if (!batch.begun) batch.begun = event.wall_time;
        take_event(event, offset, batch);
        break;
      case io::EventReader::Status::end:
      case io::EventReader::Status::cut: more = false; break;
      case io::EventReader::Status::damaged:
        complain(reader.error().what, offset);
        more = reader.skip_damaged();
        stuck_ = !more;
    }
  }
  const uint64_t used = reader.position().offset;
  if (used > 0) {
    if (position_ == 0) head_ = window_.substr(0, std::min<size_t>(kHead, used));
    last_bytes_ = window_.substr(used - kLastBytes, kLastBytes);
    position_ += used;
  }
  batch.restarted = std::exchange(restarted_, false);
  batch.end = position_;
  more = used > 0 && !stuck_ && position_ < size_;
  if (!more || window_.size() > kWindow) std::string().swap(window_);
  return more;
}

void EventTail::take_event(const io::Event& event, uint64_t offset, Batch& batch) {
  const bool whole = io::visit_event_points(event, [&](const io::EventPoint& point) {
    auto at = tags_.find(point.tag);
    if (at == tags_.end()) {
      batch.tags.push_back(tag_info(point));
      scalar_.push_back(batch.tags.back().is_scalar());
      at = tags_.emplace(point.tag, static_cast<uint32_t>(scalar_.size() - 1)).first;
    }
    Sample sample{.tag = at->second, .point = {.step = event.step, .wall = event.wall_time}, .offset = offset};
    if (scalar_[at->second] && !(point.value != nullptr && read_scalar(*point.value, &sample.point.value))) {
      complain(fmt::format("the value of '{}' at step {} is no scalar", point.tag, event.step), offset);
      return;
    }
    batch.samples.push_back(sample);
  });
  if (!whole) complain(fmt::format("the event of step {} is damaged", event.step), offset);
}

}  // namespace runnel::board
