#include "runnel/io/record_index.h"

#include <cstring>

#include "runnel/base/caller_line.h"
#include "runnel/base/crc32c.h"
#include "runnel/base/format.h"
#include "runnel/base/varint.h"
#include "runnel/io/file_frame.h"
#include "runnel/io/origin.h"
#include "runnel/io/record_reader.h"

namespace runnel::io {
namespace {

constexpr char magic[] = "RNLRIX01";
constexpr size_t head = 24;  // magic, size of the records' file, number of records
constexpr uint64_t frame = kRecordHeader + kRecordFooter;

}  // namespace

std::string record_index_path(const std::string& path) { return path + ".index"; }

uint64_t RecordIndex::offset(uint64_t record) const {
  if (record >= size()) throw make_error(Code::out_of_range, "[TFRecord] record {} of an index of {}", record, size());
  return offsets_[record];
}

uint64_t RecordIndex::length(uint64_t record) const {
  const uint64_t begin = offset(record);
  return offsets_[record + 1] - begin - frame;
}

RecordIndex RecordIndex::build(const std::string& path, Env& env, FunctionRef<void(uint64_t, uint64_t)> progress) {
  RecordReader reader(path, {.detect_compression = true}, env, SourceSite());
  if (reader.compression() != Compression::none) {
    throw make_error(Code::failed_precondition,
                     "[TFRecord] {} is compressed ({}): only plain files can be read at any record; write it anew "
                     "without compression",
                     path, compression_name(reader.compression()));
  }
  RecordIndex index;
  index.offsets_.push_back(0);
  while (reader.next(SourceSite())) {
    index.offsets_.push_back(reader.position().offset);
    if (reader.position().record % 4096 == 0) progress(reader.position().offset, reader.file_size());
  }
  progress(reader.file_size(), reader.file_size());
  return index;
}

void RecordIndex::save(const std::string& path, Env& env) const {
  std::string out(magic, 8);
  append_fixed64(out, file_size());
  append_fixed64(out, size());
  for (size_t i = 0; i < size(); ++i) append_fixed64(out, offsets_[i]);
  append_fixed32(out, crc32c_mask(crc32c(out.data(), out.size())));
  env.write_file(record_index_path(path), as_bytes(out));
}

RecordIndex RecordIndex::load(const std::string& path, Env& env) {
  const std::string name = record_index_path(path);
  const std::vector<std::byte> bytes = env.read_file(name);
  auto bad = [&](const char* what) {
    return make_error(Code::data_loss, "[TFRecord] {}: {}; make it again with `runnel records index`", name, what);
  };
  if (bytes.size() < head + 4 || std::memcmp(bytes.data(), magic, 8) != 0) throw bad("no index of records");
  const size_t body = bytes.size() - 4;
  if (crc32c_mask(crc32c(bytes.data(), body)) != load_fixed32(bytes.data() + body)) throw bad("bad checksum");
  const uint64_t file_size = load_fixed64(bytes.data() + 8), count = load_fixed64(bytes.data() + 16);
  if (count != (body - head) / 8 || (body - head) % 8 != 0) throw bad("another length than it says");
  RecordIndex index;
  index.offsets_.reserve(static_cast<size_t>(count) + 1);
  for (size_t i = 0; i < count; ++i) index.offsets_.push_back(load_fixed64(bytes.data() + head + 8 * i));
  index.offsets_.push_back(file_size);
  for (size_t i = 0; i < count; ++i) {
    if (index.offsets_[i + 1] < index.offsets_[i] || index.offsets_[i + 1] - index.offsets_[i] < frame) {
      throw bad("offsets that do not rise");
    }
  }
  if (index.offsets_[0] != 0) throw bad("a first record that is not at the beginning");
  if (const uint64_t now = env.stat(path).size; now != file_size) {
    throw make_error(Code::failed_precondition,
                     "[TFRecord] {} was made when the records had {} bytes, now they have {}: make it again with "
                     "`runnel records index`",
                     name, file_size, now);
  }
  return index;
}

IndexedRecords::IndexedRecords(const std::string& path, Env& env, SourceSite where)
    : path_(path), file_(at_caller(where, [&] { return map_records(path, env); })), index_(at_caller(where, [&] {
        return env.exists(record_index_path(path)) ? RecordIndex::load(path, env) : RecordIndex::build(path, env);
      })) {
  if (file_->bytes().size() != index_.file_size()) {
    throw at_line(make_error(Code::failed_precondition, "[TFRecord] {} changed while it was opened", path), where);
  }
}

ByteSpan IndexedRecords::operator[](uint64_t record) const {
  if (record >= size()) {
    throw make_error(Code::out_of_range, "[TFRecord] {}: record {} of {}", path_, record, size());
  }
  const uint64_t offset = index_.offset(record), length = index_.length(record);
  const std::byte* p = file_->bytes().data() + offset;
  const char* what = nullptr;
  if (crc32c_mask(crc32c(p, 8)) != load_fixed32(p + 8)) {
    what = "bad length checksum";
  } else if (load_fixed64(p) != length) {
    what = "another length than the index says";
  } else if (crc32c_mask(crc32c(p + kRecordHeader, length)) != load_fixed32(p + kRecordHeader + length)) {
    what = "bad data checksum";
  }
  if (what != nullptr) {
    throw make_error(Code::data_loss, "[TFRecord] {}: record {} at byte {}: {}", path_, record, offset, what)
        .inside(file_frame(path_, offset));
  }
  return {p + kRecordHeader, static_cast<size_t>(length)};
}

}  // namespace runnel::io
