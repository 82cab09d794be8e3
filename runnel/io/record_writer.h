#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/source_site.h"
#include "runnel/io/compression.h"

namespace runnel::io {

struct TFRecordOptions {
  Compression compression = Compression::none;
  DeflateOptions deflate = {};           // used if compression is
  size_t buffer_size = size_t{1} << 16;  // bytes collected before the file is written to
  bool atomic = false;  // the file appears, whole and durable, with close(); before that nothing is there
};

// Writes a TFRecord file. A failed write leaves the file unfinished: every later call throws too.
class RUNNEL_API TFRecordWriter {
 public:
  explicit TFRecordWriter(const std::string& path, const TFRecordOptions& options = {}, Env& env = Env::posix(),
                          SourceSite where = SourceSite::current());
  // Closes, and then cannot report a failure: call close() first. While an exception unwinds, an atomic file is
  // dropped.
  ~TFRecordWriter();
  TFRecordWriter(TFRecordWriter&&) noexcept;
  TFRecordWriter& operator=(TFRecordWriter&&) noexcept;

  void write(ByteSpan record, SourceSite where = SourceSite::current());
  void write(std::string_view record, SourceSite where = SourceSite::current()) {
    write(std::as_bytes(std::span(record)), where);
  }
  // Hands everything so far to the system; a reader that opens the file now finds it.
  void flush(SourceSite where = SourceSite::current());
  void close(SourceSite where = SourceSite::current());  // a second call does nothing

  uint64_t records() const;
  uint64_t bytes() const;  // written so far, before compression

 private:
  struct State;
  State& state(const SourceSite& where = SourceSite()) const;  // an Error where it was moved from

  std::unique_ptr<State> state_;
};

}  // namespace runnel::io
