#pragma once

// How the stages of pipelines are made; Dataset and AnyDataset are the front of these.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/function_ref.h"
#include "runnel/base/source_site.h"
#include "runnel/data/item.h"
#include "runnel/data/node_ptr.h"
#include "runnel/data/options.h"

namespace runnel {
class ConcreteFunction;
}

namespace runnel::data {

namespace detail {
RUNNEL_API void run_as_call(const SourceSite& where, FunctionRef<void()> call);
[[noreturn]] RUNNEL_API void no_dataset();

// f() as a call of the user at `where`: its errors name that line, and so do those of the stages that it makes.
template <class F>
auto called_at(const SourceSite& where, const F& f) {
  std::optional<std::decay_t<std::invoke_result_t<const F&>>> made;
  run_as_call(where, [&] { made.emplace(f()); });
  return std::move(*made);
}
}  // namespace detail

// A callable on elements. The input's tensors may be moved out of it.
struct ItemFn {
  std::function<void(Item& in, Item& out)> call;
  // May it be called on whole batches at once, with the results that it gives element by element? Null: no.
  std::function<bool(const std::vector<TensorSpec>& element)> vectorises;
  const Structure* structure = nullptr;  // of what it gives, where its type says so
  bool thread_safe = false;              // may be called by many threads though none was asked for
};
using Predicate = std::function<bool(Item& in)>;
using KeyFn = std::function<int64_t(Item& in)>;
using GroupFn = std::function<NodePtr(int64_t key, NodePtr group)>;
// Changes the state and gives an element.
struct ScanFn {
  std::function<void(Item& state, Item& in, Item& out)> call;
  const Structure* structure = nullptr;
};
using ExpandFn = std::function<NodePtr(Item& in)>;
// Fills an element; false: there is none left. A generator's source makes one for each pass.
using GeneratorFn = std::function<bool(Item& out)>;

// Is a traced function made of ops alone that treat every element of their arguments by itself?
RUNNEL_API bool is_elementwise(const ConcreteFunction& f);

// What f gives for elements of this kind, found by tracing a call of it; unknown where that cannot be done.
RUNNEL_API ElementSpec result_spec(const std::function<void(Item& in, Item& out)>& f, const ElementSpec& in,
                                   const Structure* structure);
// Nothing is known but the structure; null: not even that.
RUNNEL_API ElementSpec unknown_spec(const Structure* structure);

namespace nodes {

// Of every description.
RUNNEL_API int64_t cardinality(const NodePtr& node);
RUNNEL_API ElementSpec element_spec(const NodePtr& node);
RUNNEL_API std::string explain(const NodePtr& node);  // of the latest pass
// The node itself; an Error of the function `who`, which needs all elements, where it is known never to end.
RUNNEL_API NodePtr finite(const NodePtr& node, const char* who);

// Sources.
RUNNEL_API NodePtr tensors(Item element);
RUNNEL_API NodePtr tensor_slices(Item components);
RUNNEL_API NodePtr range(int64_t start, int64_t stop, int64_t step);
RUNNEL_API NodePtr counter(int64_t start, int64_t step);
RUNNEL_API NodePtr random(std::optional<int64_t> seed, bool rerandomize_each_iteration);
RUNNEL_API NodePtr generator(std::function<GeneratorFn()> make, ElementSpec spec);
RUNNEL_API NodePtr zip(std::vector<NodePtr> inputs);
RUNNEL_API NodePtr concatenate(NodePtr first, NodePtr second);
RUNNEL_API NodePtr choose(std::vector<NodePtr> inputs, NodePtr choice, bool stop_on_empty);
RUNNEL_API NodePtr sample(std::vector<NodePtr> inputs, std::vector<double> weights, std::optional<int64_t> seed,
                          bool stop_on_empty, bool rerandomize_each_iteration);

// Files: one element per line, per so many bytes, per TFRecord. The input's elements are paths.
RUNNEL_API NodePtr text_lines(NodePtr paths, const TextLineOptions& options, Env& env);
RUNNEL_API NodePtr fixed_length_records(NodePtr paths, FixedLengthOptions options, Env& env);
RUNNEL_API NodePtr csv_records(NodePtr paths, CsvOptions options, Env& env);
RUNNEL_API NodePtr list_files(const std::vector<std::string>& patterns, bool shuffled, std::optional<int64_t> seed,
                              Env& env);
RUNNEL_API NodePtr records(NodePtr paths, const RecordOptions& options, Env& env);
// The paths are read now, and the files' indexes.
RUNNEL_API NodePtr indexed_records(const NodePtr& paths, Env& env);

// Transformations.
RUNNEL_API NodePtr map(NodePtr input, ItemFn f, const MapOptions& options);
RUNNEL_API NodePtr batch(NodePtr input, int64_t size, const BatchOptions& options);
RUNNEL_API NodePtr shuffle(NodePtr input, int64_t buffer_size, const ShuffleOptions& options);
RUNNEL_API NodePtr repeat(NodePtr input, int64_t count);
RUNNEL_API NodePtr take(NodePtr input, int64_t count);
RUNNEL_API NodePtr skip(NodePtr input, int64_t count);
RUNNEL_API NodePtr shard(NodePtr input, int64_t num_shards, int64_t index);
RUNNEL_API NodePtr prefetch(NodePtr input, int64_t buffer_size);
RUNNEL_API NodePtr filter(NodePtr input, Predicate p);
RUNNEL_API NodePtr take_while(NodePtr input, Predicate p);
RUNNEL_API NodePtr scan(NodePtr input, Item initial, ScanFn f);
RUNNEL_API NodePtr unique(NodePtr input);
RUNNEL_API NodePtr ignore_errors(NodePtr input, std::shared_ptr<std::atomic<int64_t>> count,
                                 std::function<void(const std::exception&)> log);
RUNNEL_API NodePtr rejection_resample(NodePtr input, KeyFn class_of, std::vector<double> target,
                                      std::vector<double> initial, std::optional<int64_t> seed);
RUNNEL_API std::vector<NodePtr> split(NodePtr input, const std::vector<double>& fractions, int64_t seed);
// `structure` of the elements of the datasets that f makes, where it is known.
RUNNEL_API NodePtr flat_map(NodePtr input, ExpandFn f, const Structure* structure);
RUNNEL_API NodePtr interleave(NodePtr input, ExpandFn f, const InterleaveOptions& options, const Structure* structure);
RUNNEL_API NodePtr padded_batch(NodePtr input, int64_t size, PaddedBatchOptions options);
// `only_ragged`: whoever takes the batches knows RaggedTensors alone.
RUNNEL_API NodePtr ragged_batch(NodePtr input, int64_t size, bool drop_remainder, bool only_ragged);
RUNNEL_API NodePtr unbatch(NodePtr input);
RUNNEL_API NodePtr rebatch(NodePtr input, int64_t size, bool drop_remainder);
RUNNEL_API NodePtr window(NodePtr input, int64_t size, const WindowOptions& options);
RUNNEL_API NodePtr group_by_window(NodePtr input, KeyFn key, GroupFn reduce, std::function<int64_t(int64_t)> size,
                                   const Structure* structure);
RUNNEL_API NodePtr bucket_by_sequence_length(NodePtr input, KeyFn length, std::vector<int64_t> boundaries,
                                             const std::vector<int64_t>& batch_sizes, const PaddedBatchOptions& options,
                                             bool pad_to_boundary);
RUNNEL_API NodePtr cache(NodePtr input, const std::string& path, Env& env);
RUNNEL_API NodePtr snapshot(NodePtr input, const std::string& dir, Env& env);
RUNNEL_API NodePtr with_options(NodePtr input, const DatasetOptions& options);

}  // namespace nodes
}  // namespace runnel::data
