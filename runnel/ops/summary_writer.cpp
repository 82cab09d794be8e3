#include "runnel/ops/summary_writer.h"

#include <bit>
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/base/varint.h"
#include "runnel/tensor/handle.h"
#include "runnel/tensor/serialize.h"

namespace runnel {

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

void SummaryResource::write(int64_t step, std::string_view tag, const Tensor& value, std::string_view metadata) const {
  events().write_tensor(step, tag, serialize_tensor_proto(value), metadata, SourceSite());
}

void SummaryResource::write_scalar(int64_t step, std::string_view tag, float value, std::string_view metadata) const {
  // {dtype: float32, tensor_shape: {}, tensor_content}
  char proto[] = {0x08, 0x01, 0x12, 0x00, 0x22, 0x04, 0, 0, 0, 0};
  store_fixed32(proto + 6, std::bit_cast<uint32_t>(value));
  events().write_tensor(step, tag, {proto, sizeof proto}, metadata, SourceSite());
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
