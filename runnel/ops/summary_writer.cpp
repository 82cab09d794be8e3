#include "runnel/ops/summary_writer.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/base/log.h"
#include "runnel/base/profile_scope.h"
#include "runnel/base/varint.h"
#include "runnel/ops/named_resources.h"
#include "runnel/tensor/handle.h"
#include "runnel/tensor/profile_step.h"
#include "runnel/tensor/serialize.h"

namespace runnel {

namespace {

// The named writers. Whoever uses them may outlive static objects, so this is never destroyed.
struct NamedWriters {
  std::mutex mutex;
  std::vector<std::weak_ptr<SummaryResource>> all;
};

NamedWriters& named_writers() {
  static auto* const writers = new NamedWriters;
  return *writers;
}

void close_named_writers() {
  std::vector<std::weak_ptr<SummaryResource>> all;
  {
    const std::lock_guard lock(named_writers().mutex);
    all.swap(named_writers().all);
  }
  for (const auto& named : all) {
    const std::shared_ptr<SummaryResource> writer = named.lock();
    if (!writer || !writer->has_file()) continue;
    try {
      writer->events().close(SourceSite());
    } catch (const Error& e) {
      log_warning("{}", e.what());
    }
  }
}

}  // namespace

SummaryResource::~SummaryResource() = default;

std::string SummaryResource::describe() const {
  const io::EventWriter* events = events_.load(std::memory_order_acquire);
  return events ? "summary writer of " + events->path() : "summary writer without a file";
}

void SummaryResource::create(const std::string& logdir, const io::EventWriterOptions& options) {
  const std::lock_guard lock(creating_);
  if (owned_) return;
  owned_ = std::make_unique<io::EventWriter>(logdir, options, Env::posix(), SourceSite());
  events_.store(owned_.get(), std::memory_order_release);
}

io::EventWriter& SummaryResource::events() const {
  io::EventWriter* events = events_.load(std::memory_order_acquire);
  if (!events) {
    throw make_error(Code::failed_precondition, "the summary writer has no file yet: run CreateSummaryFileWriter");
  }
  return *events;
}

void SummaryResource::close() {
  io::EventWriter& open = events();
  forget_resource(this);
  open.close(SourceSite());
}

bool SummaryResource::write(int64_t step, std::string_view tag, const Tensor& value, std::string_view metadata) const {
  const profile::Span span(profile::Kind::summary, tag, profile::current_step());
  return events().write_tensor(step, tag, serialize_tensor_proto(value), metadata, SourceSite());
}

bool SummaryResource::write_scalar(int64_t step, std::string_view tag, float value, std::string_view metadata) const {
  const profile::Span span(profile::Kind::summary, tag, profile::current_step());
  // {dtype: float32, tensor_shape: {}, tensor_content}
  char proto[] = {0x08, 0x01, 0x12, 0x00, 0x22, 0x04, 0, 0, 0, 0};
  store_fixed32(proto + 6, std::bit_cast<uint32_t>(value));
  return events().write_tensor(step, tag, {proto, sizeof proto}, metadata, SourceSite());
}

bool SummaryResource::write_event(int64_t step, io::EventKind kind, std::string_view body) const {
  const profile::Span span(profile::Kind::summary, "event", profile::current_step());
  std::string event;
  io::append_event(event, io::event_time(), step, kind, body);
  return events().write(event, SourceSite());
}

std::shared_ptr<SummaryResource> named_summary(const std::string& container, const std::string& name,
                                               const ResourceHome& home) {
  return std::static_pointer_cast<SummaryResource>(named_resource("summary writer", home, container, name, [&] {
    auto made = std::make_shared<SummaryResource>();
    if (!name.empty()) {
      static const int hooked = std::atexit(close_named_writers);
      static_cast<void>(hooked);
      NamedWriters& named = named_writers();
      const std::lock_guard lock(named.mutex);
      std::erase_if(named.all, [](const auto& writer) { return writer.expired(); });
      named.all.push_back(made);
    }
    return made;
  }));
}

Tensor handle_to_summary(std::shared_ptr<SummaryResource> writer) {
  Tensor handle = Tensor::empty(DType::resource, {});
  handle.mutable_data<ResourceHandle>()->object = std::move(writer);
  return handle;
}

SummaryResource& summary_of(const Tensor& handle) {
  auto* writer = referred_as<SummaryResource>(handle);
  if (!writer) throw invalid_argument("the resource is no summary writer");
  return *writer;
}

}  // namespace runnel
