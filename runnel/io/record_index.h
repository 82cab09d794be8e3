#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"
#include "runnel/base/function_ref.h"
#include "runnel/base/moved_from.h"
#include "runnel/base/source_site.h"

namespace runnel::io {

// Where the index of a TFRecord file stands: beside it.
RUNNEL_API std::string record_index_path(const std::string& path);  // FILE.index

// The offsets of a plain (not compressed) TFRecord file's records: its length, and random access. The format of the
// index file is described in docs/formats/tfrecord.md.
class RUNNEL_API RecordIndex {
 public:
  // Goes through the whole file, checksums included; progress(done, total) is told now and then. Throws Error with
  // file, offset and record at damage.
  static RecordIndex build(
      const std::string& path, Env& env = Env::posix(),
      FunctionRef<void(uint64_t, uint64_t)> progress = [](uint64_t, uint64_t) {});
  // From the file beside `path`. Throws Error: not_found, data_loss (damaged), failed_precondition (the records have
  // another size than when they were indexed).
  static RecordIndex load(const std::string& path, Env& env = Env::posix());
  void save(const std::string& path, Env& env = Env::posix()) const;  // atomically, beside `path`

  uint64_t size() const { return offsets().size() - 1; }
  // Of record number `record`; an Error where there is none.
  uint64_t offset(uint64_t record) const;  // of its header
  uint64_t length(uint64_t record) const;  // of its data
  uint64_t file_size() const { return offsets().back(); }

 private:
  const std::vector<uint64_t>& offsets() const {
    if (offsets_.empty()) [[unlikely]]
      throw_moved_from("RecordIndex");
    return offsets_;
  }

  std::vector<uint64_t> offsets_;  // one more than there are records: the last is the end
};

// Records by number, from a mapped file: the index beside it is used if it is there and fits, else made in memory.
class RUNNEL_API IndexedRecords {
 public:
  explicit IndexedRecords(const std::string& path, Env& env = Env::posix(), SourceSite where = SourceSite::current());

  uint64_t size() const { return index().size(); }
  // Checked against its checksums; an Error names file, offset and record. Safe from many threads. The span is valid
  // while this object or its owner() lives.
  ByteSpan operator[](uint64_t record) const;
  std::shared_ptr<const void> owner() const { return file(); }
  const RecordIndex& index() const {
    file();
    return index_;
  }

 private:
  const std::shared_ptr<MappedFile>& file() const {
    if (!file_) [[unlikely]]
      throw_moved_from("IndexedRecords");
    return file_;
  }

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  RecordIndex index_;
};

}  // namespace runnel::io
