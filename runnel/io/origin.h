#pragma once

// Which file bytes in memory came from, so that an error about them can name it: a picture that does not decode is
// found by its file, a line of text by its file and number, a record by its file, number and offset. Strings share
// memory on their way through a pipeline, so this costs nothing until something fails.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/io/record_reader.h"

namespace runnel::io {

// Says where a range of memory came from, for as long as it lives; ranges of two marks never overlap.
class RUNNEL_API OriginMark {
 public:
  // `records`: the range holds TFRecords, and the first of them stands here in the file.
  OriginMark(ByteSpan range, std::string path, std::optional<RecordPosition> records = std::nullopt);
  // The range is text that begins with this line of the file; the first one is 1.
  OriginMark(ByteSpan range, std::string path, uint64_t first_line);
  ~OriginMark();
  OriginMark(const OriginMark&) = delete;
  OriginMark& operator=(const OriginMark&) = delete;

 private:
  const std::byte* begin_;
};

// A mapped file of TFRecords, or of text, marked as such.
RUNNEL_API std::shared_ptr<MappedFile> map_records(const std::string& path, Env& env);
RUNNEL_API std::shared_ptr<MappedFile> map_text(const std::string& path, Env& env);

// "photos/7.jpg", "train.csv, line 5", "train.tfrecord, record 12 at byte 3405", or "" for bytes that are of no file.
RUNNEL_API std::string origin_of(std::string_view bytes);

}  // namespace runnel::io
