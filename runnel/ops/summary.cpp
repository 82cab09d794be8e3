// Summary writers in graphs: TensorFlow's ops. The functions of runnel/summary write through the same objects.
#include <cmath>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/io/event.h"
#include "runnel/op/builder.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/reduce.h"
#include "runnel/ops/segment.h"
#include "runnel/ops/summary_writer.h"

namespace runnel {
namespace {

struct SummaryBucketAttrs {
  int64_t buckets = 30;
  static constexpr auto fields() { return field_list(field("buckets", &SummaryBucketAttrs::buckets, {.minimum = 0})); }
};

// What a graph wrote is on the disk within a second, though no scope ends there.
void written_by_graph(const SummaryResource& writer) { writer.events().schedule_flush(); }

std::string_view text_in(KernelContext& c, int i) { return c.in<Bytes>(i)->view(); }

// The scalars among the inputs: `first` to `last`, as far as their shapes are known.
template <int first, int last>
void scalars(InferContext& c) {
  for (int i = first; i <= last; ++i) c.require_rank(i, 0);
}

// Rows of left edge, right edge and count: equal buckets between the smallest and the largest value, the last one with
// its right edge. Values that are all the same are counted in the last of empty buckets.
template <class T>
void count_buckets(const T* values, int64_t n, int64_t k, double* rows) {
  const auto number = [&](int64_t i) { return static_cast<double>(values[i]); };
  std::fill(rows, rows + 3 * k, 0.0);
  if (n == 0 || k == 0) return;
  double low = number(0), high = low;
  bool nan = false;
  for (int64_t i = 0; i < n; ++i) {
    const double v = number(i);
    low = v < low ? v : low;
    high = v > high ? v : high;
    nan = nan || v != v;
  }
  if (nan) low = high = std::nan("");
  const double range = high - low;
  if (range == 0) {
    for (int64_t i = 0; i < k; ++i) rows[3 * i] = rows[3 * i + 1] = high;
    rows[3 * k - 1] = static_cast<double>(n);
    return;
  }
  const double width = range / static_cast<double>(k);
  for (int64_t i = 0; i < k; ++i) {
    rows[3 * i] = i == 0 ? low : low + width * static_cast<double>(i);
    rows[3 * i + 1] = i + 1 == k ? high : low + width * static_cast<double>(i + 1);
  }
  for (int64_t i = 0; i < n; ++i) {
    const double at = std::floor((number(i) - low) / width);
    if (!(at >= 0)) continue;  // infinite values, and those beside them, are in no bucket
    const int64_t bucket = at < static_cast<double>(k) ? static_cast<int64_t>(at) : k - 1;
    rows[3 * bucket + 2] += 1;
  }
}

// The same of public ops, for files that others read.
std::vector<Tensor> buckets_of_ops(const Tensor& data, int64_t k) {
  const Tensor flat = reshape(cast(data, DType::float64), {-1});
  if (k == 0) return {zeros({0, 3}, DType::float64)};
  const Tensor none = equal(size(flat), 0), zero = zeros_like(reduce_sum(flat));
  const Tensor low = where(none, zero, reduce_min(flat)), high = where(none, zero, reduce_max(flat));
  const Tensor width = (high - low) / static_cast<double>(k);
  const Tensor one_value = equal(width, 0.0);
  const Tensor at = floor((flat - low) / where(one_value, ones_like(width), width));
  const Tensor bucket =
      where(one_value, ones_like(flat) * static_cast<double>(k - 1), minimum(at, static_cast<double>(k - 1)));
  const Tensor counts = math::unsorted_segment_sum(ones_like(flat), cast(bucket, DType::int32), k);
  const Tensor number = cast(range(k), DType::float64);
  const Tensor right =
      where(equal(number, static_cast<double>(k - 1)), ones_like(number) * high, low + width * (number + 1.0));
  return {stack({low + width * number, right, counts}, 1)};
}

}  // namespace

void register_summary(Registry& r) {
  r.define<SummaryWriterAttrs>("SummaryWriter")
      .out("writer", DType::resource)
      .shape(scalar_shape)
      .forwards()
      .cpu([](KernelContext& c, const SummaryWriterAttrs& a) {
        c.forward(0, handle_to_summary(named_summary(a.container, a.shared_name, a.home)));
      })
      .stateful()
      .doc("The summary writer of that shared_name; a new one without a name.");

  r.define("CreateSummaryFileWriter")
      .in("writer", DType::resource)
      .in_host("logdir", DType::string)
      .in_host("max_queue", DType::int32)
      .in_host("flush_millis", DType::int32)
      .in_host("filename_suffix", DType::string)
      .shape(scalars<0, 4>)
      .cpu([](KernelContext& c) {
        summary_of(c.in(0)).create(std::string(text_in(c, 1)), {.max_queue = *c.in<int32_t>(2),
                                                                .flush_millis = *c.in<int32_t>(3),
                                                                .filename_suffix = std::string(text_in(c, 4))});
      })
      .stateful()
      .doc("Opens the event file of a summary writer in the folder logdir, unless it has one.");

  r.define("WriteSummary")
      .in("writer", DType::resource)
      .in_host("step", DType::int64)
      .type("T", all_types)
      .in("tensor", "T")
      .in_host("tag", DType::string)
      .in_host("summary_metadata", DType::string)
      .shape([](InferContext& c) {
        for (const int i : {0, 1, 3, 4}) c.require_rank(i, 0);
      })
      .cpu([](KernelContext& c) {
        const SummaryResource& writer = summary_of(c.in(0));
        writer.write(*c.in<int64_t>(1), text_in(c, 3), c.in(2).to_host(), text_in(c, 4));
        written_by_graph(writer);
      })
      .any_device()
      .stateful()
      .doc("Writes a tensor with a tag and what its plugin is to know (a SummaryMetadata message).");

  r.define("WriteRawProtoSummary")
      .in("writer", DType::resource)
      .in_host("step", DType::int64)
      .in_host("tensor", DType::string)
      .shape(scalars<0, 1>)
      .cpu([](KernelContext& c) {
        std::string summary;  // messages one after the other are one with the values of all
        for (int64_t i = 0; i < c.in(2).num_elements(); ++i) summary += c.in<Bytes>(2)[i].view();
        if (!io::visit_event_values(summary, [](const io::EventValue&) {})) {
          throw invalid_argument("the {} bytes are no Summary", summary.size());
        }
        const SummaryResource& writer = summary_of(c.in(0));
        writer.write_event(*c.in<int64_t>(1), io::EventKind::summary, summary);
        written_by_graph(writer);
      })
      .stateful()
      .doc("Writes Summary messages as they are.");

  r.define("WriteGraphSummary")
      .in("writer", DType::resource)
      .in_host("step", DType::int64)
      .in_host("tensor", DType::string)
      .shape(scalars<0, 2>)
      .cpu([](KernelContext& c) {
        const SummaryResource& writer = summary_of(c.in(0));
        writer.write_event(*c.in<int64_t>(1), io::EventKind::graph_def, text_in(c, 2));
        written_by_graph(writer);
      })
      .stateful()
      .doc("Writes a graph (a GraphDef message).");

  r.define("ImportEvent")
      .in("writer", DType::resource)
      .in_host("event", DType::string)
      .shape(scalars<0, 1>)
      .cpu([](KernelContext& c) {
        io::Event event;
        if (!io::parse_event(text_in(c, 1), &event)) {
          throw invalid_argument("the {} bytes are no Event", text_in(c, 1).size());
        }
        const SummaryResource& writer = summary_of(c.in(0));
        writer.events().write(text_in(c, 1), SourceSite());
        written_by_graph(writer);
      })
      .stateful()
      .doc("Writes an Event message as it is.");

  r.define("FlushSummaryWriter")
      .in("writer", DType::resource)
      .shape(scalars<0, 0>)
      .cpu([](KernelContext& c) { summary_of(c.in(0)).events().flush(SourceSite()); })
      .stateful()
      .doc("Returns once all that was written is with the system.");

  r.define("CloseSummaryWriter")
      .in("writer", DType::resource)
      .shape(scalars<0, 0>)
      .cpu([](KernelContext& c) { summary_of(c.in(0)).close(); })
      .stateful()
      .doc("Flushes a summary writer, ends its file and forgets its name.");

  r.define<SummaryBucketAttrs>("_SummaryBuckets")
      .in("data", real_numbers + booleans)
      .out("buckets", DType::float64)
      .shape([](InferContext& c, const SummaryBucketAttrs& a) {
        c.output(PartialShape{a.buckets, 3});
      })
      .cpu([]<class T>(KernelContext& c, const SummaryBucketAttrs& a) {
        count_buckets(c.in<T>(0), c.in(0).num_elements(), a.buckets, c.out<double>());
      })
      .decompose(
          [](const std::vector<Tensor>& in, const SummaryBucketAttrs& a) { return buckets_of_ops(in[0], a.buckets); })
      .not_differentiable()
      .doc("The histogram of all elements as TensorBoard's plugin has it: rows of left edge, right edge and count.")
      .sample({.in = {Tensor{0.f, 1.f, 2.f, 4.f}}, .out = {Tensor::of<double>({0, 2, 2, 2, 4, 2}, {2, 3})}},
              {.buckets = 2});
}

}  // namespace runnel
