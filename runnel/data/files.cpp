// Sources that read files: lines of text, records of a fixed length, TFRecords.
#include <algorithm>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"
#include "runnel/io/compression.h"
#include "runnel/io/csv.h"
#include "runnel/io/glob.h"
#include "runnel/io/origin.h"
#include "runnel/io/record_reader.h"

namespace runnel::data {
namespace {

// The records of one file, in order.
class FileReader {
 public:
  virtual ~FileReader() = default;
  virtual bool next(Bytes& out) = 0;
  virtual void save(StateWriter& out) const = 0;
  virtual void restore(StateReader& in) = 0;
  // After an error: is there more behind it?
  virtual bool goes_on() { return false; }
};
using OpenFn = std::function<std::unique_ptr<FileReader>(const std::string& path)>;

// A file as a stream of pieces: of the mapped file itself, or decompressed. Pieces are marked, so that errors about
// what they hold can name the file, and the line where it is text.
class FileBytes {
 public:
  enum class Kind { text, binary };
  FileBytes(Kind kind, const std::string& path, const std::string& compression, int64_t buffer, Env& env)
      : kind_(kind), path_(path), buffer_(buffer > 0 ? static_cast<size_t>(buffer) : size_t{1} << 18) {
    const io::Compression packed = io::compression_from_name(compression);
    file_ = packed == io::Compression::none && kind == Kind::text ? io::map_text(path, env) : env.map(path);
    if (packed != io::Compression::none) inflate_.emplace(file_->bytes(), packed, path);
  }
  const std::string& path() const { return path_; }

  // What follows the bytes used so far; `more` asks for a longer piece than the one before.
  std::string_view peek() const { return piece_.substr(at_); }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  bool more() {
    if (!inflate_) {
      if (owner_) return false;
      owner_ = file_;
      piece_ = {reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size()};
      return !piece_.empty();
    }
    auto next = std::make_shared<Piece>();
    next->bytes = peek();
    const size_t had = next->bytes.size();
    next->bytes.resize(std::max(had * 2, had + buffer_));
    const size_t got = inflate_->read(std::as_writable_bytes(std::span(next->bytes).subspan(had)));
    next->bytes.resize(had + got);
    if (kind_ == Kind::text) {
      line_ +=
          static_cast<uint64_t>(std::count(piece_.begin(), piece_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
      next->mark.emplace(std::as_bytes(std::span(next->bytes)), path_, line_);
    }
    piece_ = next->bytes;
    owner_ = std::move(next);
    at_ = 0;
    return got > 0;
  }
  void use(size_t n) {
    at_ += n;
    offset_ += n;
  }
  uint64_t offset() const { return offset_; }
  void seek(uint64_t offset) {
    while (offset_ < offset) {
      if (peek().empty() && !more()) {
        throw make_error(Code::data_loss, "{}: the file ends at byte {}, before byte {} where reading stopped", path_,
                         offset_, offset);
      }
      use(std::min<uint64_t>(peek().size(), offset - offset_));
    }
  }

 private:
  struct Piece {
    std::string bytes;
    std::optional<io::OriginMark> mark;
  };

  Kind kind_;
  std::string path_;
  std::shared_ptr<MappedFile> file_;
  size_t buffer_;
  std::optional<io::InflateReader> inflate_;
  std::shared_ptr<const void> owner_;
  std::string_view piece_;
  size_t at_ = 0;
  uint64_t offset_ = 0;
  uint64_t line_ = 1;  // with which piece_ begins, where it is decompressed text
};

class LineReader : public FileReader {
 public:
  explicit LineReader(FileBytes bytes) : bytes_(std::move(bytes)) {}
  bool next(Bytes& out) override {
    size_t searched = 0;
    while (true) {
      const std::string_view rest = bytes_.peek();
      size_t end = rest.find('\n', searched);
      const bool found = end != std::string_view::npos;
      if (!found) {
        searched = rest.size();
        if (bytes_.more()) continue;
        if (rest.empty()) return false;
        end = rest.size();
      }
      const size_t length = end > 0 && rest[end - 1] == '\r' ? end - 1 : end;
      out = Bytes(bytes_.owner(), rest.substr(0, length));
      bytes_.use(end + (found ? 1 : 0));
      return true;
    }
  }
  void save(StateWriter& out) const override { out.integer(bytes_.offset()); }
  void restore(StateReader& in) override { bytes_.seek(in.integer()); }

 private:
  FileBytes bytes_;
};

// Records of comma-separated text: a line, or several where quotes hold line ends.
class CsvReader : public FileReader {
 public:
  CsvReader(FileBytes bytes, const CsvOptions& options) : bytes_(std::move(bytes)) {
    csv_.delimiter = options.field_delim.at(0);
    csv_.quotes = options.use_quote_delim;
    Bytes header;
    if (options.header) next(header);
  }
  bool next(Bytes& out) override {
    while (true) {
      const std::string_view rest = bytes_.peek();
      const size_t end = rest.empty() ? 0 : io::csv_record_end(rest, 0, csv_);
      if (end == rest.size() && bytes_.more()) continue;
      if (rest.empty()) return false;
      size_t length = end;
      while (length > 0 && (rest[length - 1] == '\n' || rest[length - 1] == '\r')) --length;
      out = Bytes(bytes_.owner(), rest.substr(0, length));
      bytes_.use(end);
      if (length > 0) return true;
    }
  }
  void save(StateWriter& out) const override { out.integer(bytes_.offset()); }
  void restore(StateReader& in) override { bytes_.seek(in.integer()); }

 private:
  FileBytes bytes_;
  io::CsvOptions csv_;
};

class FixedLengthReader : public FileReader {
 public:
  FixedLengthReader(FileBytes bytes, const FixedLengthOptions& options) : bytes_(std::move(bytes)), options_(options) {
    bytes_.seek(static_cast<uint64_t>(options.header_bytes));
  }
  bool next(Bytes& out) override {
    const auto record = static_cast<size_t>(options_.record_bytes), footer = static_cast<size_t>(options_.footer_bytes);
    while (bytes_.peek().size() < record + footer && bytes_.more()) {
    }
    const std::string_view rest = bytes_.peek();
    if (rest.size() <= footer) return false;
    if (rest.size() < record + footer) {
      const uint64_t at = bytes_.offset();
      bytes_.use(rest.size());
      throw make_error(Code::data_loss, "{}: byte {}, record {}: {} bytes are left, a record has {}", bytes_.path(), at,
                       number_, rest.size() - footer, record);
    }
    out = Bytes(bytes_.owner(), rest.substr(0, record));
    bytes_.use(record);
    ++number_;
    return true;
  }
  void save(StateWriter& out) const override {
    out.integer(bytes_.offset());
    out.integer(number_);
  }
  void restore(StateReader& in) override {
    bytes_.seek(in.integer());
    number_ = in.integer();
  }

 private:
  FileBytes bytes_;
  FixedLengthOptions options_;
  uint64_t number_ = 0;
};

class TFRecordFileReader : public FileReader {
 public:
  explicit TFRecordFileReader(io::RecordReader reader) : reader_(std::move(reader)) {}
  bool next(Bytes& out) override {
    const std::optional<ByteSpan> record = reader_.next(SourceSite());
    if (!record) return false;
    const std::shared_ptr<const void>& owner = reader_.owner();
    out = Bytes(owner, {reinterpret_cast<const char*>(record->data()), record->size()});
    return true;
  }
  bool goes_on() override { return reader_.skip_damaged(); }
  void save(StateWriter& out) const override {
    out.integer(reader_.position().offset);
    out.integer(reader_.position().record);
  }
  void restore(StateReader& in) override {
    io::RecordPosition at;
    at.offset = in.integer();
    at.record = in.integer();
    reader_.seek(at, SourceSite());
  }

 private:
  io::RecordReader reader_;
};

class FilesIterator : public IteratorNode {
 public:
  FilesIterator(IteratorPtr paths, OpenFn open) : paths_(std::move(paths)), open_(std::move(open)) {}
  void save(StateWriter& out) const override {
    out.integer(reader_ != nullptr);
    if (!reader_) return save_nested(*paths_, out);
    out.text(before_);
    reader_->save(out);
  }
  void restore(StateReader& in) override {
    reader_.reset();
    if (in.integer() == 0) return restore_nested(*paths_, in);
    restore_nested(*paths_, in);
    if (!open_next()) throw Error(Code::data_loss, "[restore] there are fewer files than when the state was saved");
    reader_->restore(in);
  }

 protected:
  bool produce(Item& out) override {
    const Tensor t = Tensor::empty(DType::string, {});
    if (!read(*t.mutable_data<Bytes>())) return false;
    out.structure = detail::fixed_structure<Tensor>();
    out.tensors.assign(1, t);
    return true;
  }
  int64_t produce_batch(int64_t n, Item& out, std::exception_ptr& error) override {
    if (n > kRoomyBatch) return IteratorNode::produce_batch(n, out, error);
    Tensor t = Tensor::empty(DType::string, {n});
    int64_t got = 0;
    try {
      while (got < n && in_stage(where_, [&] { return read(t.mutable_data<Bytes>()[got]); })) ++got;
    } catch (...) {
      error = std::current_exception();
    }
    out.structure = detail::fixed_structure<Tensor>();
    out.tensors.assign(1, got < n ? t.rows(0, got) : t);
    return got;
  }

 private:
  bool open_next() {
    StateWriter w;
    paths_->save(w);
    before_ = w.take();
    Item item;
    if (!paths_->next(item)) return false;
    reader_ = open_(item.tensors.at(0).item<std::string>());
    return true;
  }
  bool read(Bytes& out) {
    while (reader_ || open_next()) {
      try {
        if (reader_->next(out)) return true;
      } catch (...) {
        if (!reader_->goes_on()) reader_.reset();
        throw;
      }
      reader_.reset();
    }
    return false;
  }

  IteratorPtr paths_;
  OpenFn open_;
  std::string before_;  // the state of paths_ before the file that is open
  std::unique_ptr<FileReader> reader_;
};

class FilesNode : public DatasetNode {
 public:
  FilesNode(NodePtr paths, const char* name, OpenFn open)
      : DatasetNode({std::move(paths)}), name_(name), open_(std::move(open)) {}
  std::string name() const override { return name_; }
  ElementSpec element_spec() const override { return scalar_spec(DType::string); }
  int64_t cardinality() const override { return input()->cardinality() == 0 ? 0 : UNKNOWN_CARDINALITY; }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    return std::make_unique<FilesIterator>(input()->iterate(ctx), open_);
  }

 private:
  const char* name_;
  OpenFn open_;
};

// One file after the other, or several at a time in turns.
NodePtr files(NodePtr paths, const char* name, OpenFn open, int parallel) {
  check_parallel(name, "num_parallel_reads", parallel);
  if (parallel == 0) return std::make_shared<FilesNode>(std::move(paths), name, std::move(open));
  const auto one = [name, open = std::move(open)](Item& path) -> NodePtr {
    return std::make_shared<FilesNode>(nodes::tensors(path), name, open);
  };
  return nodes::interleave(std::move(paths), one,
                           {.cycle_length = parallel == AUTOTUNE ? 0 : parallel, .num_parallel_calls = parallel},
                           detail::fixed_structure<Tensor>());
}

}  // namespace

NodePtr nodes::text_lines(NodePtr paths, const TextLineOptions& options, Env& env) {
  io::compression_from_name(options.compression_type);  // an unknown one is an error now
  return files(
      std::move(paths), "TextLine",
      [options, &env](const std::string& path) -> std::unique_ptr<FileReader> {
        return std::make_unique<LineReader>(
            FileBytes(FileBytes::Kind::text, path, options.compression_type, options.buffer_size, env));
      },
      options.num_parallel_reads);
}

NodePtr nodes::csv_records(NodePtr paths, CsvOptions options, Env& env) {
  check_parallel("csv", "num_parallel_calls", options.num_parallel_calls);
  if (options.field_delim.size() != 1)
    throw invalid_argument("[csv] the delimiter '{}' is not one character", options.field_delim);
  io::compression_from_name(options.compression_type);
  return files(
      std::move(paths), "Csv",
      [options, &env](const std::string& path) -> std::unique_ptr<FileReader> {
        return std::make_unique<CsvReader>(
            FileBytes(FileBytes::Kind::text, path, options.compression_type, options.buffer_size, env), options);
      },
      options.num_parallel_reads);
}

NodePtr nodes::list_files(const std::vector<std::string>& patterns, bool shuffled, std::optional<int64_t> seed,
                          Env& env) {
  std::vector<Bytes> found;
  for (const std::string& pattern : patterns) {
    for (const std::string& path : io::matching_paths(pattern, env)) found.emplace_back(path);
  }
  if (found.empty()) throw make_error(Code::not_found, "[list_files] no file fits {}", fmt::join(patterns, ", "));
  Item item;
  from_value(Tensor::of<Bytes>(found), item);
  const NodePtr paths = tensor_slices(std::move(item));
  return shuffled ? shuffle(paths, static_cast<int64_t>(found.size()), {.seed = seed}) : paths;
}

NodePtr nodes::fixed_length_records(NodePtr paths, FixedLengthOptions options, Env& env) {
  if (options.record_bytes < 1 || options.header_bytes < 0 || options.footer_bytes < 0) {
    throw invalid_argument("[FixedLengthRecordDataset] record_bytes {}, header_bytes {}, footer_bytes {}",
                           options.record_bytes, options.header_bytes, options.footer_bytes);
  }
  io::compression_from_name(options.compression_type);
  return files(
      std::move(paths), "FixedLengthRecord",
      [options, &env](const std::string& path) -> std::unique_ptr<FileReader> {
        return std::make_unique<FixedLengthReader>(
            FileBytes(FileBytes::Kind::binary, path, options.compression_type, options.buffer_size, env), options);
      },
      options.num_parallel_reads);
}

NodePtr nodes::records(NodePtr paths, const RecordOptions& options, Env& env) {
  io::RecordReaderOptions reader;
  reader.compression = io::compression_from_name(options.compression_type);
  if (options.buffer_size > 0) reader.buffer_size = static_cast<size_t>(options.buffer_size);
  return files(
      std::move(paths), "TFRecord",
      [reader, &env](const std::string& path) -> std::unique_ptr<FileReader> {
        return std::make_unique<TFRecordFileReader>(io::RecordReader(path, reader, env, SourceSite()));
      },
      options.num_parallel_reads);
}

}  // namespace runnel::data
