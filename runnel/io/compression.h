#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runnel/base/env.h"
#include "runnel/base/error.h"
#include "runnel/base/export.h"
#include "runnel/base/function_ref.h"
#include "runnel/base/source_site.h"

namespace runnel::io {

enum class Compression { none, gzip, zlib };

// "", "GZIP" and "ZLIB", as TensorFlow's compression_type spells them; lower case is read too.
RUNNEL_API const char* compression_name(Compression compression);
RUNNEL_API Compression compression_from_name(const std::string& name, SourceSite where = SourceSite::current());

// By the first bytes. Plain data may begin like a zlib stream: ask only where something tells the two apart.
RUNNEL_API bool is_zlib(ByteSpan bytes);

// Decompresses bytes that lie in memory (a mapped file), piece by piece. All members of a gzip or zlib file are one
// stream; zeros after the last are padding, anything else after it is an error. `name` begins every message.
class RUNNEL_API InflateReader {
 public:
  InflateReader(ByteSpan bytes, Compression compression, std::string name);
  ~InflateReader();
  InflateReader(InflateReader&&) noexcept;
  InflateReader& operator=(InflateReader&&) noexcept;

  // Fills `out`; fewer bytes mean that the data ended. Damaged data throws Error (data_loss) only after everything
  // that stands before the damage was handed out, and again at each further call.
  size_t read(std::span<std::byte> out, SourceSite where = SourceSite::current());
  uint64_t consumed() const;  // compressed bytes used so far
  void rewind();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct DeflateOptions {
  int level = -1;        // 0 (none) to 9 (smallest); -1 leaves the choice to zlib
  int window_bits = 15;  // 9 to 15
  int mem_level = 8;     // 1 to 9
};

// Compresses a stream; what is ready is handed to `sink`.
class RUNNEL_API DeflateWriter {
 public:
  DeflateWriter(Compression compression, const DeflateOptions& options);
  ~DeflateWriter();
  DeflateWriter(const DeflateWriter&) = delete;
  DeflateWriter& operator=(const DeflateWriter&) = delete;

  using Sink = FunctionRef<void(ByteSpan)>;
  void write(ByteSpan bytes, Sink sink, SourceSite where = SourceSite::current());
  void flush(Sink sink, SourceSite where = SourceSite::current());   // what was written so far can be read back
  void finish(Sink sink, SourceSite where = SourceSite::current());  // ends the stream; the writer is used up

 private:
  void pump(ByteSpan bytes, int mode, Sink sink);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace runnel::io
