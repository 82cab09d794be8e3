#include "runnel/op/op_event.h"

#include <algorithm>
#include <cstring>

#include "runnel/base/error.h"
#include "runnel/tensor/profile_step.h"

namespace runnel {
namespace {

constexpr size_t kMostTensors = 12;  // that an event tells the shapes of
constexpr double kAllElements = -1;  // flops: the elements of the outputs

// A tensor in the payload: dtype, rank, sizes. The inputs stand first.
struct PackedTensor {
  static constexpr size_t kHead = 2;
  static size_t size(const Tensor& t) {
    return kHead + (t.defined() ? static_cast<size_t>(t.impl()->shape.rank()) * sizeof(int64_t) : 0);
  }
  static char* write(char* to, const Tensor& t) {
    const bool known = t.defined();
    to[0] = static_cast<char>(known ? t.impl()->dtype : DType::invalid);
    to[1] = static_cast<char>(known ? t.impl()->shape.rank() : 0);
    to += kHead;
    if (!known) return to;
    for (const int64_t size : t.impl()->shape) {
      std::memcpy(to, &size, sizeof size);
      to += sizeof size;
    }
    return to;
  }
};

struct ReadTensor {
  DType dtype;
  Dims dims;

  explicit ReadTensor(std::string_view& from)
      : dtype(static_cast<DType>(from[0])), dims(static_cast<size_t>(static_cast<unsigned char>(from[1])), 0) {
    from.remove_prefix(PackedTensor::kHead);
    if (!dims.empty()) std::memcpy(dims.data(), from.data(), dims.size() * sizeof(int64_t));
    from.remove_prefix(dims.size() * sizeof(int64_t));
  }
  bool known() const { return dtype != DType::invalid; }
  int64_t elements() const { return known() ? Shape(dims).num_elements() : 0; }
  int64_t bytes() const {
    return known() && is_plain(dtype) ? elements() * static_cast<int64_t>(dtype_size(dtype)) : 0;
  }
  std::string text() const { return known() ? dtype_name(dtype) + Shape(dims).str() : "nothing"; }
};

// "float32[50,784] float32[784,100] -> float32[50,100]"
void read_op(const void* subject, std::string_view payload, profile::Event& event) {
  const auto& op = *static_cast<const OpDef*>(subject);
  event.op_type = op.name;
  if (event.name.empty()) event.name = op.name;
  size_t inputs = static_cast<unsigned char>(payload[0]);
  payload.remove_prefix(1);
  double elements = 0;
  for (size_t i = 0; !payload.empty(); ++i) {
    const ReadTensor tensor(payload);
    event.bytes += tensor.bytes();
    if (i == inputs) event.detail += event.detail.empty() ? "->" : " ->";
    if (!event.detail.empty()) event.detail += ' ';
    event.detail += tensor.text();
    if (i >= inputs) elements += static_cast<double>(tensor.elements());
  }
  if (event.flops == kAllElements) event.flops = elements;
}

}  // namespace

OpEvent::OpEvent(profile::Kind kind, std::string_view node, const OpDef& op, Inputs inputs, const void* attrs,
                 Tensor* outputs, int num_outputs)
    : op_(op),
      inputs_(inputs),
      attrs_(attrs),
      outputs_(outputs),
      num_outputs_(num_outputs),
      recording_(profile::current_recording()) {
  event_.kind = kind;
  event_.name = node;
  event_.step = profile::current_step();
  event_.reader = read_op;
  event_.subject = &op;
  event_.begin_ticks = profile::now_ticks();
}

double OpEvent::flops() const {
  if (!op_.flops && !op_.elementwise) return 0;
  if (!op_.flops && static_cast<size_t>(num_outputs_) <= kMostTensors) return kAllElements;
  for (const Tensor* t : inputs_) {
    if (!t->defined()) return 0;
  }
  for (int i = 0; i < num_outputs_; ++i) {
    if (!outputs_[i].defined()) return 0;  // it failed
  }
  if (!op_.flops) {
    double elements = 0;
    for (int i = 0; i < num_outputs_; ++i) elements += static_cast<double>(outputs_[i].num_elements());
    return elements;
  }
  try {
    return op_.flops(KernelContext(op_, inputs_, attrs_, outputs_, nullptr, num_outputs_, Device::cpu()));
  } catch (const Error&) {
    return 0;  // a variable is gone that the call had
  }
}

OpEvent::~OpEvent() {
  if (recording_ == 0 || recording_ != profile::current_recording()) return;
  event_.end_ticks = profile::now_ticks();
  event_.flops = flops();
  const size_t inputs = std::min(inputs_.size(), kMostTensors);
  const size_t outputs = std::min(static_cast<size_t>(num_outputs_), kMostTensors);
  size_t size = 1;
  for (size_t i = 0; i < inputs; ++i) size += PackedTensor::size(*inputs_[i]);
  for (size_t i = 0; i < outputs; ++i) size += PackedTensor::size(outputs_[i]);
  const auto add_bytes = [&](const Tensor& t) {
    if (t.defined() && is_plain(t.dtype())) event_.bytes += static_cast<int64_t>(t.num_bytes());
  };
  for (size_t i = inputs; i < inputs_.size(); ++i) add_bytes(*inputs_[i]);
  for (size_t i = outputs; i < static_cast<size_t>(num_outputs_); ++i) add_bytes(outputs_[i]);
  char* to = profile::begin_put(event_, size);
  if (!to) return;
  *to++ = static_cast<char>(inputs);
  for (size_t i = 0; i < inputs; ++i) to = PackedTensor::write(to, *inputs_[i]);
  for (size_t i = 0; i < outputs; ++i) to = PackedTensor::write(to, outputs_[i]);
  profile::end_put();
}

}  // namespace runnel
