#include "runnel/io/record_writer.h"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <optional>

#include "runnel/base/caller_line.h"
#include "runnel/base/crc32c.h"
#include "runnel/base/format.h"
#include "runnel/base/moved_from.h"
#include "runnel/base/varint.h"

namespace runnel::io {
namespace {

std::string temporary_name(const std::string& path) {
  static std::atomic<uint64_t> serial{0};  // two writers of one path must not share a temporary file
  return fmt::format("{}.tmp-{}-r{}", path, ::getpid(), serial++);
}

}  // namespace

struct TFRecordWriter::State {
  Env& env;
  std::string path, written_path;
  TFRecordOptions options;
  std::unique_ptr<WritableFile> file;
  std::optional<DeflateWriter> deflate;
  std::string buffer;
  uint64_t records = 0, bytes = 0;
  bool failed = false;
  int exceptions = std::uncaught_exceptions();

  State(const std::string& p, const TFRecordOptions& o, Env& e)
      : env(e), path(p), written_path(o.atomic ? temporary_name(p) : p), options(o) {
    if (options.compression != Compression::none) deflate.emplace(options.compression, options.deflate);
    file = env.create(written_path);
  }

  // Runs a step that may fail halfway; the file is then of no use.
  template <class F>
  void attempt(const SourceSite& where, const F& step) {
    at_caller(where, [&] {
      if (file == nullptr) throw make_error(Code::failed_precondition, "[TFRecordWriter] {} is closed", path);
      if (failed) {
        throw make_error(Code::failed_precondition,
                         "[TFRecordWriter] {}: an earlier write failed; the file is unfinished", path);
      }
      failed = true;
      step();
      failed = false;
    });
  }

  void put(ByteSpan ready) {
    if (deflate) {
      deflate->write(ready, [&](ByteSpan packed) { file->append(packed); });
    } else {
      file->append(ready);
    }
  }

  void drain() {
    if (!buffer.empty()) put(as_bytes(buffer));
    buffer.clear();
  }

  void write(ByteSpan record) {
    char header[12];
    store_fixed64(header, record.size());
    store_fixed32(header + 8, crc32c_mask(crc32c(header, 8)));
    const uint32_t crc = crc32c_mask(crc32c(record.data(), record.size()));
    buffer.append(header, sizeof header);
    if (record.size() >= options.buffer_size) {  // large: no second copy
      drain();
      put(record);
    } else {
      buffer.append(reinterpret_cast<const char*>(record.data()), record.size());
    }
    append_fixed32(buffer, crc);
    if (buffer.size() >= options.buffer_size) drain();
    ++records;
    bytes += record.size() + sizeof header + sizeof crc;
  }

  void close() {
    drain();
    if (deflate) deflate->finish([&](ByteSpan packed) { file->append(packed); });
    if (options.atomic) file->sync();
    file->close();
    if (options.atomic) {
      env.rename(written_path, path);
      env.sync_dir(parent_dir(path));
    }
    file.reset();
  }

  void drop_temporary() noexcept {
    if (!options.atomic) return;
    try {
      file.reset();
      if (env.exists(written_path)) env.remove(written_path);
    } catch (const std::exception&) {
      // Nobody is left to tell.
    }
  }
};

TFRecordWriter::TFRecordWriter(const std::string& path, const TFRecordOptions& options, Env& env, SourceSite where)
    : state_(at_caller(where, [&] { return std::make_unique<State>(path, options, env); })) {}

TFRecordWriter::~TFRecordWriter() {
  if (state_ == nullptr || state_->file == nullptr) return;
  const bool unwinding = std::uncaught_exceptions() > state_->exceptions;
  if (!state_->failed && !(state_->options.atomic && unwinding)) {
    try {
      close(SourceSite());
      return;
    } catch (const std::exception&) {
      // Said above: call close() to hear of it.
    }
  }
  state_->drop_temporary();
}

TFRecordWriter::TFRecordWriter(TFRecordWriter&&) noexcept = default;
TFRecordWriter& TFRecordWriter::operator=(TFRecordWriter&& other) noexcept {
  TFRecordWriter old(std::move(*this));  // closed at the end of this scope
  state_ = std::move(other.state_);
  return *this;
}

TFRecordWriter::State& TFRecordWriter::state(const SourceSite& where) const {
  if (!state_) throw_moved_from("TFRecordWriter", where);
  return *state_;
}

void TFRecordWriter::write(ByteSpan record, SourceSite where) {
  State& s = state(where);
  s.attempt(where, [&] { s.write(record); });
}

void TFRecordWriter::flush(SourceSite where) {
  State& s = state(where);
  s.attempt(where, [&] {
    s.drain();
    if (s.deflate) s.deflate->flush([&](ByteSpan packed) { s.file->append(packed); });
  });
}

void TFRecordWriter::close(SourceSite where) {
  State& s = state(where);
  if (s.file == nullptr) return;
  s.attempt(where, [&] { s.close(); });
}

uint64_t TFRecordWriter::records() const { return state().records; }
uint64_t TFRecordWriter::bytes() const { return state().bytes; }

}  // namespace runnel::io
