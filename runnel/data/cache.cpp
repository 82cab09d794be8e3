// Elements kept from the first pass: in memory, or in a file that appears only when it is whole.
#include <unistd.h>

#include <atomic>

#include "runnel/base/crc32c.h"
#include "runnel/base/format.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"
#include "runnel/io/record_reader.h"
#include "runnel/io/record_writer.h"
#include "runnel/tensor/serialize.h"

namespace runnel::data {
namespace {

constexpr std::string_view kHeader = "runnel element cache 1";

struct Store {
  std::mutex mutex;
  std::shared_ptr<const std::vector<Item>> items;  // null until a pass was complete
  int64_t bytes = 0;
};

class MemoryCacheNode : public DatasetNode {
 public:
  explicit MemoryCacheNode(NodePtr input) : DatasetNode({std::move(input)}) {}
  std::string name() const override { return "Cache"; }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override { return input()->cardinality(); }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : IteratorNode {
      NodePtr node;
      Context ctx;
      std::shared_ptr<Store> store;
      std::shared_ptr<const std::vector<Item>> items;
      IteratorPtr input;
      std::vector<Item> kept;
      bool whole = true;  // nothing was missed on the way
      int64_t at = 0;
      int64_t bytes = 0;
      ~It() override { ctx.pipeline->budget.give(bytes); }
      void begin() {
        const std::lock_guard lock(store->mutex);
        items = store->items;
        if (!items) {
          input = node->iterate(ctx);
          return;
        }
        input.reset();
        ctx.pipeline->budget.give(std::exchange(bytes, store->bytes));
        ctx.pipeline->budget.take(bytes);
      }
      bool produce(Item& out) override {
        if (items) {
          if (at >= static_cast<int64_t>(items->size())) return false;
          out = (*items)[static_cast<size_t>(at++)];
          return true;
        }
        try {
          if (input->next(out)) {
            keep(out);
            ++at;
            return true;
          }
        } catch (...) {
          whole = false;
          throw;
        }
        if (whole) {
          const std::lock_guard lock(store->mutex);
          if (!store->items) {
            store->items = std::make_shared<std::vector<Item>>(std::move(kept));
            store->bytes = bytes;
          }
          items = store->items;
        }
        return false;
      }
      void keep(const Item& item) {
        const auto n = static_cast<int64_t>(bytes_of(item));
        bytes += n;
        ctx.pipeline->budget.take(n);
        if (bytes > ctx.pipeline->budget.limit()) {
          throw make_error(
              Code::resource_exhausted,
              "[cache] {} elements of {} bytes do not fit the byte budget of {}; cache into a file, or raise "
              "DatasetOptions::byte_budget",
              at + 1, bytes, ctx.pipeline->budget.limit());
        }
        kept.push_back(item);
      }
      void save(StateWriter& out) const override { out.integer(static_cast<uint64_t>(at)); }
      void restore(StateReader& in) override {
        const int64_t until = in.count();
        kept.clear();
        ctx.pipeline->budget.give(std::exchange(bytes, 0));
        at = 0;
        begin();
        if (items) {
          if (until > static_cast<int64_t>(items->size())) StateReader::fail();
          at = until;
          return;
        }
        for (Item item; at < until && input->next(item); ++at) keep(item);
      }
    };
    auto it = std::make_unique<It>();
    it->node = input();
    it->ctx = ctx.in_epoch(0);  // what is kept does not depend on the pass that filled the cache
    it->store = store_;
    it->begin();
    return it;
  }

 private:
  std::shared_ptr<Store> store_ = std::make_shared<Store>();
};

class FileCacheNode : public DatasetNode {
 public:
  FileCacheNode(NodePtr input, std::string path, const char* name, bool makes_folder, Env& env)
      : DatasetNode({std::move(input)}), path_(std::move(path)), name_(name), makes_folder_(makes_folder), env_(env) {}
  std::string name() const override { return name_; }
  ElementSpec element_spec() const override { return input()->element_spec(); }
  int64_t cardinality() const override { return input()->cardinality(); }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : IteratorNode {
      NodePtr node;
      Context ctx;
      std::string path, temp;
      Env* env = nullptr;
      const Structure* structure = nullptr;
      std::unique_ptr<io::RecordReader> reader;
      std::unique_ptr<io::TFRecordWriter> writer;
      IteratorPtr input;
      bool whole = true, makes_folder = false;
      int64_t at = 0;
      ~It() override { drop(); }
      void drop() noexcept {
        if (!writer) return;
        writer.reset();
        try {
          env->remove(temp);
        } catch (const std::exception&) {
          // Left over, and never taken for a cache.
        }
      }
      void begin() {
        drop();
        reader.reset();
        input.reset();
        at = 0;
        if (env->exists(path)) {
          reader = std::make_unique<io::RecordReader>(path, io::RecordReaderOptions{}, *env, SourceSite());
          const auto header = reader->next(SourceSite());
          const std::string_view text =
              header ? std::string_view(reinterpret_cast<const char*>(header->data()), header->size()) : "";
          if (!text.starts_with(kHeader)) throw make_error(Code::data_loss, "[cache] {} is no cache of elements", path);
          structure = decode_structure(text.substr(kHeader.size()));
          return;
        }
        input = node->iterate(ctx);
      }
      bool produce(Item& out) override {
        if (!reader && !input) begin();
        if (reader) {
          const auto record = reader->next(SourceSite());
          if (!record) return false;
          ++at;
          StateReader in({reinterpret_cast<const char*>(record->data()), record->size()});
          out.structure = structure;
          out.tensors.clear();
          while (!in.at_end()) out.tensors.push_back(parse_tensor_proto(in.text()));
          return true;
        }
        try {
          if (input->next(out)) {
            write(out);
            ++at;
            return true;
          }
        } catch (...) {
          whole = false;
          throw;
        }
        if (whole && writer) {
          writer->close(SourceSite());
          writer.reset();
          env->rename(temp, path);
          env->sync_dir(parent_dir(path));
        }
        return false;
      }
      void write(const Item& item) {
        if (!writer) {
          static std::atomic<int> number{0};
          const std::string folder = parent_dir(path);
          if (makes_folder) {
            env->create_dirs(folder);
          } else if (!env->exists(folder)) {
            throw make_error(Code::not_found, "[cache] {}: the folder {} does not exist", path, folder);
          }
          temp = fmt::format("{}.part-{}-{}", path, getpid(), number++);
          writer = std::make_unique<io::TFRecordWriter>(temp, io::TFRecordOptions{.atomic = true}, *env, SourceSite());
          structure = item.structure;
          writer->write(std::string(kHeader) + encode_structure(structure), SourceSite());
        }
        if (item.structure != structure) detail::wrong_structure(structure, item.structure);
        StateWriter w;
        for (const Tensor& t : item.tensors) w.text(serialize_tensor_proto(t));
        writer->write(w.bytes(), SourceSite());
      }
      void save(StateWriter& out) const override { out.integer(static_cast<uint64_t>(at)); }
      void restore(StateReader& in) override {
        const int64_t until = in.count();
        whole = true;
        begin();
        for (Item item; at < until && produce(item);) {
        }
      }
    };
    auto it = std::make_unique<It>();
    it->node = input();
    it->ctx = ctx.in_epoch(0);
    it->path = path_;
    it->makes_folder = makes_folder_;
    it->env = &env_;
    return it;
  }

 private:
  std::string path_;
  const char* name_;
  bool makes_folder_;
  Env& env_;
};

}  // namespace

NodePtr nodes::cache(NodePtr input, const std::string& path, Env& env) {
  if (path.empty()) return std::make_shared<MemoryCacheNode>(std::move(input));
  return std::make_shared<FileCacheNode>(std::move(input), path, "FileCache", false, env);
}

NodePtr nodes::snapshot(NodePtr input, const std::string& dir, Env& env) {
  const std::string print = input->fingerprint();
  const std::string path = join_path(dir, fmt::format("{:08x}.snapshot", crc32c(print.data(), print.size())));
  return std::make_shared<FileCacheNode>(std::move(input), path, "Snapshot", true, env);
}

}  // namespace runnel::data
