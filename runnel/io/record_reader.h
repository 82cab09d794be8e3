#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runnel/base/env.h"
#include "runnel/base/error.h"
#include "runnel/base/export.h"
#include "runnel/base/source_site.h"
#include "runnel/io/compression.h"

namespace runnel::io {

// TFRecord: length (u64), masked crc32c of those 8 bytes, data, masked crc32c of the data; see
// docs/formats/tfrecord.md.
inline constexpr size_t kRecordHeader = 12;
inline constexpr size_t kRecordFooter = 4;

struct RecordReaderOptions {
  Compression compression = Compression::none;
  bool detect_compression = false;       // by content; `compression` is then ignored
  size_t buffer_size = size_t{1} << 18;  // decompressed bytes at a time; plain files are mapped and need no buffer
  bool verify = true;                    // the checksums of the data (those of the lengths are always verified)
};

// Where the next record begins: enough to go on from there later, in another process too. The offset counts
// decompressed bytes.
struct RecordPosition {
  uint64_t offset = 0;
  uint64_t record = 0;  // records before it
};

// What is wrong with a file, and where: the record that could not be read begins at `offset`.
struct RecordError {
  Code code = Code::data_loss;
  std::string what;  // "bad length checksum"
  uint64_t offset = 0;
  uint64_t record = 0;
};

// Reads one TFRecord file from front to back and hands out spans: of the mapped file itself, or of the buffer it is
// decompressed into. Used by one thread at a time.
class RUNNEL_API RecordReader {
 public:
  explicit RecordReader(const std::string& path, const RecordReaderOptions& options = {}, Env& env = Env::posix(),
                        SourceSite where = SourceSite::current());
  // Records in memory; `owner` keeps the bytes alive, `name` stands for the path in errors.
  RecordReader(std::shared_ptr<const void> owner, ByteSpan bytes, std::string name,
               const RecordReaderOptions& options = {}, SourceSite where = SourceSite::current());
  ~RecordReader();
  RecordReader(RecordReader&&) noexcept;
  RecordReader& operator=(RecordReader&&) noexcept;

  enum class Status { record, end, damaged };
  // Damage is a value, told by error(); the position stays at the damaged record and the next call finds it again.
  // The span is valid until the next call, or for as long as somebody holds what owner() gave for it.
  Status read(ByteSpan* record);
  const RecordError& error() const;

  // The same for those who treat damage as an exception: Error with file, offset and record number.
  std::optional<ByteSpan> next(SourceSite where = SourceSite::current());
  [[noreturn]] void throw_error(SourceSite where = SourceSite::current()) const;  // error() as that exception

  // Keeps the span that was read last alive, so that it can be used without a copy.
  std::shared_ptr<const void> owner() const;

  // After damage: steps over the record, if its length could be trusted. False: nothing behind it can be found.
  bool skip_damaged();

  RecordPosition position() const;
  // Goes to a position that position() gave, which must be a record's begin. A compressed file is decompressed up to
  // it.
  void seek(const RecordPosition& position, SourceSite where = SourceSite::current());

  const std::string& path() const;
  Compression compression() const;  // as asked for or detected
  uint64_t file_size() const;       // bytes of the file as it lies on the disk
  uint64_t file_position() const;   // how many of them have been used: for progress bars

 private:
  struct State;
  State& state(const SourceSite& where = SourceSite()) const;  // an Error where it was moved from

  std::unique_ptr<State> state_;
};

}  // namespace runnel::io
