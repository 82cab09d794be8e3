#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "runnel/base/source_site.h"
#include "runnel/keras/config.h"
#include "runnel/keras/serialization.h"

namespace runnel::keras {

struct ClassSettings;

// How a callable of a registered class with these settings is written; an Error naming `what` for any other.
RUNNEL_API Config describe_callable(const std::type_info& type, const Config& settings, const char* what);

// A function that can be written down: given by its name ("glorot_uniform"), made by a function with settings
// (initializers::random_normal({.stddev = 0.1})), an object of a class that register_keras_serializable knows, or any
// C++ callable, which has no description. `Family` finds one by name or description: static NamedCallable find(const
// Config&); kWhat says what it is, kTypeName how listings call the type, kNone what Keras writes for none (null where a
// family does not say), kDefaultDType the dtype when a call names none.
template <class Family, class Signature>
class NamedCallable;

template <class Family, class Result, class... Args>
class NamedCallable<Family, Result(Args...)> {
 public:
  using Signature = Result(Args...);
  using Function = std::function<Signature>;
  static constexpr const char* kTypeName = Family::kTypeName;

  NamedCallable() = default;                                                 // none
  NamedCallable(const char* name, SourceSite where = SourceSite::current())  // NOLINT: implicit, as all below
      : NamedCallable(Family::find(Config(name), where)) {}
  NamedCallable(const std::string& name, SourceSite where = SourceSite::current())  // NOLINT
      : NamedCallable(Family::find(Config(name), where)) {}
  NamedCallable(std::nullptr_t) {}  // NOLINT
  template <class F>
    requires std::constructible_from<Function, F> && (!std::same_as<std::decay_t<F>, NamedCallable>) &&
             (!std::convertible_to<F, std::string>) && (!std::same_as<std::decay_t<F>, std::nullptr_t>)
  NamedCallable(F f) {  // NOLINT
    if constexpr (HasFields<F>) settings_ = options_to_config(f);
    function_ = std::make_shared<Function>(std::move(f));
  }
  NamedCallable(Config description, Function f)
      : description_(std::move(description)), function_(std::make_shared<Function>(std::move(f))) {}

  explicit operator bool() const { return function_ != nullptr; }
  Result operator()(Args... args) const { return (*function_)(std::forward<Args>(args)...); }
  // initializer({2, 3})
  Result operator()(std::tuple_element_t<0, std::tuple<Args...>> shape) const
    requires requires { Family::kDefaultDType; }
  {
    return (*function_)(shape, Family::kDefaultDType);
  }

  // What Keras writes: a name, or {"class_name": ..., "config": {...}}. An Error for a bare callable.
  Config config() const {
    if (function_ && description_.is_null()) {
      return describe_callable(function_->target_type(), settings_, Family::kWhat);
    }
    if constexpr (requires { Family::kNone; }) {
      if (!function_) return Family::kNone;
    }
    return description_;
  }
  static NamedCallable from_config(const Config& config) {
    return config.is_null() ? NamedCallable() : Family::find(config);
  }
  // Was it given by this name?
  bool is_named(const char* name) const { return description_ == Config(name); }
  // The same one, or written in the same way.
  friend bool operator==(const NamedCallable& a, const NamedCallable& b) {
    return a.function_ == b.function_ || (!a.description_.is_null() && a.description_ == b.description_);
  }

 private:
  Config description_;
  Config settings_;  // of a callable with fields()
  std::shared_ptr<const Function> function_;
};

}  // namespace runnel::keras
