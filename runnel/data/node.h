#pragma once

// The two halves of a pipeline: DatasetNode, an immutable description, and IteratorNode, the state of one pass over it.
// A node whose elements can be computed one by one from their number has an Indexed view besides: shuffles of it are
// permutations, batches one gather, parallel work needs no queue before it, and its whole state is a position.
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runnel/base/error.h"
#include "runnel/base/export.h"
#include "runnel/base/source_site.h"
#include "runnel/data/item.h"
#include "runnel/data/node_ptr.h"
#include "runnel/data/pipeline.h"
#include "runnel/data/state.h"

namespace runnel::data {

// f() as a part of a stage that the user made at `where`: an error in it that names no line yet names that one.
[[noreturn]] void rethrow_from_stage(const Error& e, const SourceSite& where);
template <class F>
decltype(auto) in_stage(const SourceSite& where, const F& f) {
  try {
    return f();
  } catch (const Error& e) {
    rethrow_from_stage(e, where);
  }
}

// f() as code of the user that the stage `name`, made at `where`, calls: an Error in it that does not name that line
// says in which stage it was. `name` is a text of the program.
[[noreturn]] void rethrow_from_callable(const Error& e, const char* name, const SourceSite& where);
template <class F>
decltype(auto) in_callable(const char* name, const SourceSite& where, const F& f) {
  try {
    return f();
  } catch (const Error& e) {
    rethrow_from_callable(e, name, where);
  }
}
// An Error of the stage `who` where a Tensor of the item refers to nothing.
void check_defined(const Item& item, const char* who, const char* from = "the callable gave");

// A number that depends on all of these alone; scatters well.
inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15u * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Where in a running pipeline an iterator is made.
struct Context {
  std::shared_ptr<Pipeline> pipeline;
  uint64_t epoch = 0;  // which pass this is: decides the order of shuffles and the numbers drawn in map
  int stage = -1;      // the stage that asks

  Context in_stage(const StageStats& stats) const { return {pipeline, epoch, stats.id}; }
  Context in_epoch(uint64_t e) const { return {pipeline, e, stage}; }
};

class RUNNEL_API IteratorNode {
 public:
  virtual ~IteratorNode() = default;

  // The next element; false at the end. A call that throws has skipped the element in question: the following call
  // gives the one after it. Used by one thread at a time.
  bool next(Item& out);
  // Up to n elements, stacked; fewer at the end or before an error, which is handed back.
  int64_t next_batch(int64_t n, Item& out, std::exception_ptr& error);
  virtual void save(StateWriter& out) const = 0;
  // Continues where the iterator that was saved stood. May be called at any time.
  virtual void restore(StateReader& in) = 0;

  void set_stats(StageStats* stats) { stats_ = stats; }
  void set_where(const SourceSite& where) { where_ = where; }

 protected:
  virtual bool produce(Item& out) = 0;
  virtual int64_t produce_batch(int64_t n, Item& out, std::exception_ptr& error);
  // Does it only hand over what other threads make? They tell profiles of it then.
  virtual bool hands_over() const { return false; }
  StageStats* stats_ = nullptr;
  SourceSite where_;  // of the user's call that made the stage: errors name it

 private:
  bool timed_next(Item& out);
  bool profiled_next(Item& out);
  // produce_batch of n elements where there are hardly so many.
  int64_t produce_all(int64_t n, Item& out, std::exception_ptr& error);
};
using IteratorPtr = std::unique_ptr<IteratorNode>;

// What the stages of an indexed view ask of whoever runs it.
struct Wish {
  int parallel = 0;     // num_parallel_calls: 0 none, AUTOTUNE, or a number
  int depth = 0;        // prefetch: 0 none, AUTOTUNE, or a number
  bool serial = false;  // has a callable that is called by one thread at a time
  bool ordered = true;

  Wish with(const Wish& other) const;
};

// Elements by number. May be used by many threads at once unless wish.serial.
class RUNNEL_API Indexed {
 public:
  virtual ~Indexed() = default;
  virtual int64_t size() const = 0;
  void at(int64_t i, Item& out) const;
  // These elements, stacked.
  void gather(std::span<const int64_t> indices, Item& out) const;

  Wish wish;
  StageStats* stats = nullptr;
  SourceSite where;  // as IteratorNode's

 protected:
  virtual void compute(int64_t i, Item& out) const = 0;
  virtual void collect(std::span<const int64_t> indices, Item& out) const;
};
using IndexedPtr = std::shared_ptr<const Indexed>;
inline constexpr int64_t kEndless = int64_t{1} << 62;  // the size of an infinite view

// How many groups of `size` so many elements make, the last one perhaps smaller. Sizes may be as large as there are.
inline int64_t groups_of(int64_t elements, int64_t size) { return elements <= 0 ? 0 : (elements - 1) / size + 1; }
// A batch of more rows than this is a wish for one batch of all there is: no room is taken before they are there.
inline constexpr int64_t kRoomyBatch = int64_t{1} << 26;

class RUNNEL_API DatasetNode : public std::enable_shared_from_this<DatasetNode> {
 public:
  explicit DatasetNode(std::vector<NodePtr> inputs = {});
  virtual ~DatasetNode() = default;

  virtual std::string name() const = 0;  // "Map"
  virtual std::string details() const { return ""; }
  virtual ElementSpec element_spec() const = 0;
  virtual int64_t cardinality() const = 0;
  // Seed of what is random in this stage; 0: nothing is.
  virtual uint64_t seed() const { return 0; }
  virtual const DatasetOptions* options() const { return nullptr; }
  const std::vector<NodePtr>& inputs() const { return inputs_; }
  const NodePtr& input() const { return inputs_.front(); }
  const SourceSite& where() const { return where_; }  // of the user's call that made it

  // An iterator in the best way there is.
  IteratorPtr iterate(const Context& ctx) const;
  // An iterator that computes `depth` elements ahead (or AUTOTUNE), where the node has threads of its own; else null.
  IteratorPtr iterate_ahead(const Context& ctx, int depth) const;
  // The view, or null.
  std::shared_ptr<Indexed> index(const Context& ctx) const;
  uint64_t seed_in(const Context& ctx) const;
  std::string fingerprint() const;  // of the whole description; a saved state fits only the same

  mutable std::atomic<uint64_t> iterations{0};  // iterators made of this dataset so far
  mutable std::mutex last_mutex;
  mutable std::shared_ptr<const Pipeline> last;  // the latest that ran, for explain()

 protected:
  virtual IteratorPtr make_iterator(const Context& ctx) const = 0;
  virtual IteratorPtr make_iterator_ahead(const Context&, int) const { return nullptr; }
  virtual std::shared_ptr<Indexed> make_indexed(const Context&) const { return nullptr; }

 private:
  std::vector<NodePtr> inputs_;
  const SourceSite where_;
};

// A node that is always indexed needs no iterator of its own.
class RUNNEL_API IndexedNode : public DatasetNode {
 public:
  using DatasetNode::DatasetNode;

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override;
};

// Puts elements of one shape on top of each other, row by row. Elements with sparse or ragged parts are kept and put
// together at the end.
class RUNNEL_API Stacker {
 public:
  // `path` stands before the place in an element that errors name.
  explicit Stacker(int64_t rows, std::string path = {}) : rows_(rows), path_(std::move(path)) {}
  // Where the largest tensor of the next item will go, for a OutputDestination; undefined where it is not worth it.
  Tensor room() const;
  void add(const Item& item);
  int64_t count() const { return count_; }
  // What was added; fewer rows than announced are fine.
  void finish(Item& out);

 private:
  static constexpr size_t kWorthPlacing = 64 << 10;  // bytes of a row
  static constexpr size_t kAlignment = 64;           // that kernels may expect

  void leave_shared_memory(Tensor& rows) const;

  int64_t rows_;
  std::string path_;
  int64_t count_ = 0;
  Item made_;
  std::vector<Item> kept_;
};

// A row of a tensor, sharing its memory.
RUNNEL_API Tensor row_of(const Tensor& t, int64_t i);

// The state of one iterator inside that of another.
inline void save_nested(const IteratorNode& it, StateWriter& out) {
  StateWriter inner;
  it.save(inner);
  out.text(inner.bytes());
}
inline void restore_nested(IteratorNode& it, StateReader& in) {
  StateReader inner(in.text());
  it.restore(inner);
}

// An Error unless `n` is 0 or more, or AUTOTUNE.
void check_parallel(const char* who, const char* option, int64_t n);
RUNNEL_API void check_cancelled(const Pipeline& pipeline);
// A seed from the program's generator, for stages that were given none.
RUNNEL_API uint64_t draw_seed();

}  // namespace runnel::data
