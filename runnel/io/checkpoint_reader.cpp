#include "runnel/io/checkpoint_reader.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "runnel/base/caller_line.h"
#include "runnel/base/crc32c.h"
#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/io/checkpoint_entry.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_strings.h"
#include "runnel/io/checkpoint_table.h"
#include "runnel/io/file_frame.h"

namespace runnel::io {
namespace {

// Large tensors are read in pieces by several threads, each piece in blocks that are still in the cache when they are
// summed up.
constexpr int64_t kPiece = int64_t{1} << 20;
constexpr size_t kReadBlock = size_t{1} << 17;

bool has_parts(const CheckpointEntry& entry) { return !entry.slices.empty(); }

bool is_text(int dtype) { return dtype == kCheckpointString || dtype == kCheckpointVariant; }

}  // namespace

uint64_t element_count(const CheckpointEntry& entry) {
  uint64_t count = 1;
  for (int64_t size : entry.shape) count *= static_cast<uint64_t>(size);
  return count;
}

uint64_t byte_size(const CheckpointEntry& entry) { return element_count(entry) * checkpoint_dtype_size(entry.dtype); }

struct CheckpointReader::State {
  Env& env;
  std::string prefix;
  CheckpointHeader header;
  std::vector<CheckpointEntry> entries;
  std::map<std::string, CheckpointEntry, std::less<>> parts;  // of partitioned variables, by slice_key
  std::mutex mutex;
  std::map<int, std::unique_ptr<RandomAccessFile>> shards;  // opened so far

  State(const std::string& p, Env& e) : env(e), prefix(p) { read_index(); }

  std::string shard_path(int shard) const {
    return checkpoint_shard_path(prefix, shard, std::max(header.num_shards, 1));
  }

  void read_index() {
    const std::string path = checkpoint_index_path(prefix);
    std::vector<std::byte> bytes;
    try {
      bytes = env.read_file(path);
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
      throw make_error(Code::not_found,
                       "[checkpoint] {}: there is no such checkpoint ({} is missing); name the prefix of its files, as "
                       "in 'save/model.ckpt-100', or what latest_checkpoint gives for their folder",
                       prefix, path)
          .inside(file_frame(path, 0));
    }
    bool first = true;
    read_table(bytes, path, [&](std::string_view key, std::string_view value) {
      try {
        if (first) {
          if (!key.empty()) throw Error(Code::data_loss, "the header is missing");
          header = parse_header(value);
        } else if (key.front() == '\0') {
          parts.emplace(key, parse_entry(key, value));
        } else {
          entries.push_back(parse_entry(key, value));
        }
      } catch (const Error& error) {
        const std::string at = key.empty() ? "" : fmt::format(" key '{}':", key);
        throw make_error(error.code(), "[checkpoint] {}:{} {}", path, at, error.what()).inside(file_frame(path, 0));
      }
      first = false;
    });
    if (first) {
      throw make_error(Code::data_loss, "[checkpoint] {}: the header is missing", path).inside(file_frame(path, 0));
    }
  }

  Error bad(const CheckpointEntry& entry, uint64_t at, const std::string& what, Code code = Code::data_loss) const {
    const std::string path = shard_path(entry.shard);
    return make_error(code, "[checkpoint] {}: key '{}': {} at byte {}", path, name_of(entry), what, at)
        .inside(file_frame(path, at));
  }
  // Keys of parts are no text.
  std::string name_of(const CheckpointEntry& entry) const {
    if (!entry.key.starts_with('\0')) return entry.key;
    const std::string_view rest = std::string_view(entry.key).substr(1);
    return fmt::format("{} (a part of it)", rest.substr(0, rest.find('\0')));
  }

  const RandomAccessFile& shard(const CheckpointEntry& entry) {
    if (entry.shard >= std::max(header.num_shards, 1)) {
      throw bad(entry, entry.offset, fmt::format("shard {} of {}", entry.shard, header.num_shards));
    }
    const std::lock_guard lock(mutex);
    std::unique_ptr<RandomAccessFile>& file = shards[entry.shard];
    if (!file) {
      try {
        file = env.open_random(shard_path(entry.shard));
      } catch (const Error& error) {
        shards.erase(entry.shard);
        const char* what =
            error.code() == Code::not_found ? "the file is missing; the value should stand there" : error.what();
        throw bad(entry, entry.offset, what, error.code());
      }
    }
    return *file;
  }

  void open_shards() {
    std::set<int> met;
    const auto open = [&](const CheckpointEntry& entry) {
      if (has_parts(entry) || !met.insert(entry.shard).second) return;
      try {
        shard(entry);
      } catch (const Error&) {  // as the header says
      }
    };
    for (const CheckpointEntry& entry : entries) open(entry);
    for (const auto& [key, part] : parts) open(part);
  }

  void check_stored(const CheckpointEntry& entry) {
    const uint64_t size = shard(entry).size();
    if (entry.offset > size || entry.size > size - entry.offset) {
      throw bad(entry, entry.offset,
                fmt::format("the file ends after {} bytes, inside the {} bytes of the value", size, entry.size));
    }
  }

  std::vector<CheckpointEntry> parts_of(const CheckpointEntry& entry) const {
    std::vector<CheckpointEntry> found;
    for (const CheckpointSlice& slice : entry.slices) {
      const auto part = parts.find(slice_key(entry.key, slice));
      if (part == parts.end()) {
        throw bad_index(entry, "a part of it is missing");
      }
      if (part->second.dtype != entry.dtype || part->second.shape != slice_shape(entry.shape, slice) ||
          has_parts(part->second)) {
        throw bad_index(entry, "a part of it has another dtype or shape than it should");
      }
      found.push_back(part->second);
    }
    return found;
  }
  Error bad_index(const CheckpointEntry& entry, const std::string& what) const {
    const std::string path = checkpoint_index_path(prefix);
    return make_error(Code::data_loss, "[checkpoint] {}: key '{}': {}", path, entry.key, what)
        .inside(file_frame(path, 0));
  }

  void check(const CheckpointEntry& entry) {
    if (!has_parts(entry)) return check_stored(entry);
    uint64_t elements = 0;
    std::set<std::string> keys;
    for (const CheckpointEntry& part : parts_of(entry)) {
      check_stored(part);
      elements += element_count(part);
      if (!keys.insert(part.key).second) throw bad_index(entry, "a part of it is named twice");
    }
    if (elements != element_count(entry)) {
      throw bad_index(entry,
                      fmt::format("its parts have {} elements together, not {}", elements, element_count(entry)));
    }
    if (const auto both = find_overlap(entry.shape, entry.slices)) {  // others are in no part then
      throw bad_index(entry, fmt::format("parts {} and {} of it have elements in common", both->first, both->second));
    }
  }

  // Reads and returns the checksum.
  uint32_t read_piece(const RandomAccessFile& file, const CheckpointEntry& entry, size_t begin,
                      std::span<std::byte> out) const {
    uint32_t crc = 0;
    for (size_t at = 0; at < out.size(); at += kReadBlock) {
      const std::span<std::byte> block = out.subspan(at, std::min(kReadBlock, out.size() - at));
      const size_t got = file.read(entry.offset + begin + at, block);
      if (got < block.size()) throw bad(entry, entry.offset + begin + at + got, "the file ends inside of the value");
      crc = crc32c_extend(crc, block.data(), block.size());
    }
    return crc;
  }

  void read_stored(const CheckpointEntry& entry, std::span<std::byte> out, bool compare = true) {
    const RandomAccessFile& file = shard(entry);
    struct Sum {
      uint32_t crc = 0;
      uint64_t size = 0;
    };
    const Sum sum = parallel_reduce(
        static_cast<int64_t>(out.size()), kPiece, Sum{},
        [&](int64_t begin, int64_t end) {
          const std::span<std::byte> piece = out.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
          return Sum{read_piece(file, entry, static_cast<size_t>(begin), piece), piece.size()};
        },
        [](const Sum& a, const Sum& b) {
          return Sum{crc32c_combine(a.crc, b.crc, b.size), a.size + b.size};
        });
    if (compare) compare_checksum(entry, sum.crc);
  }
  void compare_checksum(const CheckpointEntry& entry, uint32_t crc) const {
    if (crc32c_mask(crc) == entry.crc32c) return;
    throw bad(entry, entry.offset,
              fmt::format("the checksum of its {} bytes is wrong, so they are damaged or not of this checkpoint; they "
                          "begin",
                          entry.size));
  }

  // The bytes of a tensor of strings or variants.
  std::vector<std::byte> read_text(const CheckpointEntry& entry) {
    check_stored(entry);
    std::vector<std::byte> bytes(entry.size);
    read_stored(entry, bytes, false);
    return bytes;
  }
  std::vector<std::string_view> parse_text(const CheckpointEntry& entry, std::span<const std::byte> bytes) const {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    try {
      uint32_t crc = 0;
      std::vector<std::string_view> elements = entry.dtype == kCheckpointString
                                                   ? strings_from_bytes(text, element_count(entry), &crc)
                                                   : variants_from_bytes(text, element_count(entry), &crc);
      compare_checksum(entry, crc);
      return elements;
    } catch (const StringTensorFault& fault) {
      throw bad(entry, entry.offset + fault.at, fault.what);
    }
  }

  void require_numbers(const CheckpointEntry& entry, uint64_t size, std::span<std::byte> out) const {
    if (checkpoint_dtype_size(entry.dtype) == 0) {
      throw invalid_argument("[checkpoint] {}: key '{}' is a tensor of {}: its elements are no numbers", prefix,
                             entry.key, checkpoint_dtype_name(entry.dtype));
    }
    if (out.size() != size) {
      throw invalid_argument("[checkpoint] {}: key '{}' has {} bytes, and there is room for {}", prefix, entry.key,
                             size, out.size());
    }
  }
};

CheckpointReader::CheckpointReader(const std::string& prefix, Env& env, SourceSite where)
    : state_(at_caller(where, [&] { return std::make_unique<State>(prefix, env); })) {}
CheckpointReader::~CheckpointReader() = default;
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;
CheckpointReader& CheckpointReader::operator=(CheckpointReader&&) noexcept = default;

const std::string& CheckpointReader::prefix() const { return state_->prefix; }
int CheckpointReader::num_shards() const { return state_->header.num_shards; }
std::string CheckpointReader::shard_path(int shard) const { return state_->shard_path(shard); }
const std::vector<CheckpointEntry>& CheckpointReader::entries() const { return state_->entries; }

const CheckpointEntry* CheckpointReader::find(std::string_view key) const {
  const std::vector<CheckpointEntry>& all = state_->entries;
  const auto found = std::lower_bound(all.begin(), all.end(), key,
                                      [](const CheckpointEntry& e, std::string_view k) { return e.key < k; });
  return found != all.end() && found->key == key ? &*found : nullptr;
}

const CheckpointEntry& CheckpointReader::entry(std::string_view key, SourceSite where) const {
  return at_caller(where, [&]() -> const CheckpointEntry& {
    if (const CheckpointEntry* found = find(key)) return *found;
    throw make_error(Code::not_found,
                     "[checkpoint] {}: there is no key '{}' among its {}; `runnel ckpt ls {}` lists them", prefix(),
                     key, entries().size(), prefix());
  });
}

void CheckpointReader::open_shards() const { state_->open_shards(); }

void CheckpointReader::check(const CheckpointEntry& entry, SourceSite where) const {
  at_caller(where, [&] { state_->check(entry); });
}

void CheckpointReader::read(const CheckpointEntry& entry, std::span<std::byte> out, SourceSite where) const {
  at_caller(where, [&] {
    if (has_parts(entry)) return read(entry, CheckpointSlice(entry.shape.size()), out);
    state_->require_numbers(entry, byte_size(entry), out);
    state_->check_stored(entry);
    state_->read_stored(entry, out);
  });
}

void CheckpointReader::read(const CheckpointEntry& entry, const CheckpointSlice& slice, std::span<std::byte> out,
                            SourceSite where) const {
  at_caller(where, [&] {
    const size_t element = checkpoint_dtype_size(entry.dtype);
    uint64_t size = element;
    for (int64_t dim : slice_shape(entry.shape, slice)) size *= static_cast<uint64_t>(dim);
    state_->require_numbers(entry, size, out);
    state_->check(entry);
    const auto copy_from = [&](const CheckpointEntry& stored, const CheckpointSlice& place) {
      std::vector<std::byte> bytes(byte_size(stored));
      state_->read_stored(stored, bytes);
      copy_common_part(entry.shape, element, place, bytes, slice, out);
    };
    if (!has_parts(entry)) {
      if (is_whole(slice)) return state_->read_stored(entry, out);
      return copy_from(entry, CheckpointSlice(entry.shape.size()));
    }
    const std::vector<CheckpointEntry> parts = state_->parts_of(entry);
    for (size_t i = 0; i < parts.size(); ++i) copy_from(parts[i], entry.slices[i]);
  });
}

std::vector<std::string> CheckpointReader::read_strings(const CheckpointEntry& entry, SourceSite where) const {
  return at_caller(where, [&]() -> std::vector<std::string> {
    if (!is_text(entry.dtype) || has_parts(entry)) {
      throw invalid_argument("[checkpoint] {}: key '{}' is {} of {}, not of strings", prefix(), entry.key,
                             has_parts(entry) ? "a partitioned variable" : "a tensor",
                             checkpoint_dtype_name(entry.dtype));
    }
    const std::vector<std::byte> bytes = state_->read_text(entry);
    const std::vector<std::string_view> views = state_->parse_text(entry, bytes);
    return {views.begin(), views.end()};
  });
}

std::vector<std::byte> CheckpointReader::read_raw(const CheckpointEntry& entry, SourceSite where) const {
  return at_caller(where, [&] {
    if (has_parts(entry)) {
      throw invalid_argument("[checkpoint] {}: key '{}' is a partitioned variable: its parts have bytes", prefix(),
                             entry.key);
    }
    state_->check_stored(entry);
    std::vector<std::byte> bytes(entry.size);
    state_->read_stored(entry, bytes, !is_text(entry.dtype));
    if (is_text(entry.dtype)) state_->parse_text(entry, bytes);
    return bytes;
  });
}

std::vector<CheckpointEntry> CheckpointReader::parts(const CheckpointEntry& entry, SourceSite where) const {
  return at_caller(where, [&] { return state_->parts_of(entry); });
}

}  // namespace runnel::io
