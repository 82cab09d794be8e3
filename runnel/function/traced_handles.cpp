#include "runnel/function/traced_handles.h"

#include <algorithm>
#include <string_view>

#include "runnel/base/format.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/composed.h"

namespace runnel::traced_blocks {
namespace {

class NoValue : public Symbol {
 public:
  explicit NoValue(std::string why) : why_(std::move(why)) {}
  const PartialShape& shape() const override { return shape_; }
  std::string described() const override { return why_; }

 private:
  PartialShape shape_ = PartialShape::unknown();
  std::string why_;
};

}  // namespace

void rebind(Tensor* handle, const Ref<TensorImpl>& impl) {
  const UnloggedHandles unlogged;
  *handle = Tensor(impl);
}

bool has_value(const Ref<TensorImpl>& impl) {
  if (!impl || impl->dtype == DType::invalid) return false;
  return !(impl->symbol && dynamic_cast<const NoValue*>(impl->symbol.get()));
}

bool is_lost_after_block(const Ref<TensorImpl>& impl) {
  return has_value(impl) && (impl->symbol || (impl->dtype != DType::resource && impl->dtype != DType::variant));
}

Tensor no_value(DType dtype, std::string why) {
  const Tensor stand_in(make_ref<TensorImpl>(dtype, std::make_shared<NoValue>(std::move(why))));
  Tracer::current()->void_at_end(stand_in);
  return stand_in;
}

void left_early(const char* what, const SourceSite& where) {
  throw make_error(Code::failed_precondition,
                   "[{}] a traced block was left by break, continue or return, which a graph cannot do{}", what,
                   where.at());
}

void rethrow_from_block(const Error& e, const SourceSite& where) {
  if (std::string_view(e.what()).find(where.at()) != std::string_view::npos) throw;
  rethrow_from_call(e, where);
}

Scope::Scope(const std::string& name, Tracer* parent) : tracer_(std::make_unique<Tracer>(name, parent)) {}

Scope::~Scope() {
  if (!entered_) return;
  log_.reset();
  tracer_->close();
  restore();  // the block was left by an error: what it was about to give has no meaning outside
}

void Scope::enter() {
  outer_ = thread_context().handle_log;
  log_.emplace(this);
  entered_ = true;
  tracer_->open();
}

void Scope::leave() {
  tracer_->close();
  entered_ = false;
  log_.reset();
  for (Change& c : changes_) c.after = c.handle->impl();
}

void Scope::restore() {
  for (const Change& c : changes_) rebind(c.handle, c.before);
}

const Scope::Change* Scope::find(const Tensor* handle) const {
  for (const Change& c : changes_) {
    if (c.handle == handle) return &c;
  }
  return nullptr;
}

void Scope::assigned(Tensor* handle) {
  if (!find(handle)) changes_.push_back({handle, handle->impl(), {}});
  if (outer_) outer_->assigned(handle);
}

void Scope::forget(const Tensor* handle) {
  std::erase_if(changes_, [&](const Change& c) { return c.handle == handle; });
}

void Scope::destroyed(Tensor* handle) {
  forget(handle);
  if (on_end) on_end(handle);
  if (outer_) outer_->destroyed(handle);
}

Body Scope::take_body() {
  Body body;
  body.tracer = std::move(tracer_);
  return body;
}

}  // namespace runnel::traced_blocks
