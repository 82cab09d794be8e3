#include "runnel/function/call_key.h"

#include "runnel/base/decimal.h"
#include "runnel/base/format.h"
#include "runnel/ops/variable_slot.h"

namespace runnel::function_detail {

void CallKey::shape_of(DType dtype, const PartialShape& shape) {
  tensors_at.push_back(static_cast<uint32_t>(words.size()));
  if (!shape.has_rank()) return tag(2, static_cast<uint64_t>(dtype) << 8 | 0xff);
  tag(2, static_cast<uint64_t>(dtype) << 8 | static_cast<uint64_t>(shape.rank()));
  for (const int64_t d : shape) {
    dims_at.push_back(static_cast<uint32_t>(words.size()));
    words.push_back(static_cast<uint64_t>(d));
  }
}

void CallKey::text(std::string_view s) {
  tag(3, s.size());
  for (size_t at = 0; at < s.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, s.data() + at, std::min<size_t>(8, s.size() - at));
    words.push_back(word);
  }
}

// Not by its address: a trace that does not capture the variable does not keep it, and the next may get the same.
void CallKey::variable(const Variable& v) {
  tag(6, v.defined());
  if (v.defined()) words.push_back(v.slot().id);
}

void CallKey::nest(const Nest& n) {
  tag(11, static_cast<uint64_t>(n.kind()) << 32 | n.size());
  if (n.is_leaf()) return tensor(n.leaf());
  for (const std::string& key : n.keys()) text(key);
  if (n.spec()) text(n.spec()->describe());
  for (const Nest& item : n.items()) nest(item);
}

std::string tensor_text(const Tensor& t) {
  return t.defined() ? dtype_name(t.dtype()) + t.partial_shape().str() : "nothing";
}

std::string number_text(double value) { return general_text(value); }

void nest_text(const Nest& n, const std::string& path, CallText& out) {
  if (n.is_leaf()) {
    out.emplace_back(path, tensor_text(n.leaf()));
    return;
  }
  out.emplace_back(path, nest::detail::describe(n.kind(), n.size(), n.keys()));
  for (size_t i = 0; i < n.size(); ++i) nest_text(n.items()[i], path + nest::detail::step(n.kind(), i, n.keys()), out);
}

CallDescriber::CallDescriber(std::string path, CallText& out) : path_(std::move(path)), out_(out) {}
CallDescriber::~CallDescriber() = default;
void CallDescriber::list(size_t size) { say(std::to_string(size) + " items"); }
void CallDescriber::map(size_t size) { say(std::to_string(size) + " entries"); }
void CallDescriber::optional(bool has_value) { say(has_value ? "a value" : "no value"); }
void CallDescriber::item(size_t i) { enter("[" + std::to_string(i) + "]"); }
void CallDescriber::done() {
  path_.resize(outer_.back());
  outer_.pop_back();
}
void CallDescriber::say(std::string what) { out_.emplace_back(path_, std::move(what)); }
void CallDescriber::enter(const std::string& step) {
  outer_.push_back(path_.size());
  path_ += step;
}

}  // namespace runnel::function_detail
