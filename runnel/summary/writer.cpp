#include "runnel/summary/writer.h"

#include "runnel/base/format.h"
#include "runnel/graph/control_flow.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/math.h"
#include "runnel/ops/summary_writer.h"

namespace runnel::summary {
namespace {

// The defaults of a thread outside of every scope. The thread's own stay in place once there are any, so where there
// are none later, they are hidden (a stage of a pipeline, work for another thread) and must outlive that.
Defaults& open_defaults() {
  thread_local Defaults own, of_guests;
  thread_local bool has_own = false;
  ThreadContext& context = thread_context();
  if (!context.summary) {
    Defaults& made = std::exchange(has_own, true) ? of_guests : own;
    made = {};
    made.step = &made.own_step;
    context.summary = &made;
  }
  return *context.summary;
}

// A copy that shares the step of the scope around.
Defaults inner_defaults() {
  Defaults inner;
  if (const Defaults* outer = thread_context().summary) {
    inner.writer = outer->writer;
    inner.condition = outer->condition;
    inner.step = outer->step;
  } else {
    inner.step = open_defaults().step;
  }
  return inner;
}

void require_open(const SummaryWriter& writer, const SourceSite& where) {
  if (writer.is_noop()) return;
  composed(where, [&] { summary_of(writer.handle()).events().require_open(SourceSite()); });
}

void writer_op(const char* name, const Tensor& handle, const SourceSite& where) {
  const Tensor* in[] = {&handle};
  dispatch(registered_op(name), in, nullptr, nullptr, 0, where);
}

}  // namespace

int64_t Step::number() const {
  if (kind_ == Kind::number) return number_;
  return tensor().item<int64_t>();
}

Tensor Step::tensor() const {
  if (kind_ == Kind::number) return Tensor(number_);
  const Tensor now = kind_ == Kind::variable ? variable_.value() : tensor_;
  if (!is_integer(now.dtype())) {
    throw invalid_argument("[summary] the step must be an integer, got {}", dtype_name(now.dtype()));
  }
  return now.dtype() == DType::int64 ? now : cast(now, DType::int64);
}

DefaultWriter SummaryWriter::as_default(const Step& step, SourceSite where) const {
  require_open(*this, where);
  return DefaultWriter(*this, step);
}

void SummaryWriter::set_as_default(const Step& step, SourceSite where) const {
  if (is_noop()) return;
  require_open(*this, where);
  Defaults& defaults = open_defaults();
  defaults.writer = *this;
  if (step.defined()) *defaults.step = step;
}

void SummaryWriter::flush(SourceSite where) const {
  if (is_noop()) return;
  if (is_tracing()) return writer_op("FlushSummaryWriter", handle_, where);
  composed(where, [&] {
    io::EventWriter& events = summary_of(handle_).events();
    if (events.is_open()) events.flush(SourceSite());
  });
}

void SummaryWriter::close(SourceSite where) const {
  if (is_noop()) return;
  if (is_tracing()) return writer_op("CloseSummaryWriter", handle_, where);
  composed(where, [&] { summary_of(handle_).close(); });
}

const std::string& SummaryWriter::path() const {
  if (is_noop()) throw make_error(Code::failed_precondition, "[SummaryWriter] it goes nowhere and has no file");
  return summary_of(handle_).events().path();
}

SummaryWriter create_file_writer(const std::string& logdir, const FileWriterOptions& options, SourceSite where) {
  return composed(where, [&] {
    const OutsideTrace outside;
    auto resource = std::make_shared<SummaryResource>();
    resource->create(logdir, {.max_queue = options.max_queue,
                              .flush_millis = options.flush_millis,
                              .filename_suffix = options.filename_suffix,
                              .keep_going = options.keep_going});
    return SummaryWriter(handle_to_summary(std::move(resource)));
  });
}

SummaryWriter create_noop_writer() { return {}; }

DefaultWriter::DefaultWriter(const SummaryWriter& writer, const Step& step)
    : defaults_(inner_defaults()), scope_(&defaults_) {
  if (writer.is_noop()) return;
  defaults_.writer = writer;
  if (step.defined()) {
    defaults_.own_step = step;
    defaults_.step = &defaults_.own_step;
  }
}

DefaultWriter::~DefaultWriter() {
  if (!defaults_.writer.is_noop()) summary_of(defaults_.writer.handle()).events().schedule_flush();
}

RecordIf::RecordIf(const Condition& condition) : defaults_(inner_defaults()), scope_(&defaults_) {
  defaults_.condition = condition;
}

Tensor should_record_summaries() {
  const Defaults* defaults = thread_context().summary;
  if (!defaults || defaults->writer.is_noop()) return Tensor(false);
  if (!defaults->condition) return Tensor(true);
  return defaults->condition->is_fixed() ? Tensor(defaults->condition->fixed()) : defaults->condition->ask();
}

bool has_default_writer() {
  const Defaults* defaults = thread_context().summary;
  return defaults && !defaults->writer.is_noop();
}

void experimental::set_step(const Step& step) { *open_defaults().step = step; }

Step experimental::get_step() {
  const Defaults* defaults = thread_context().summary;
  return defaults ? *defaults->step : Step();
}

void flush(SourceSite where) {
  if (const Defaults* defaults = thread_context().summary) defaults->writer.flush(where);
}

}  // namespace runnel::summary
