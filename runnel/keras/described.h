#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runnel/keras/config.h"

namespace runnel::keras {

[[noreturn]] RUNNEL_API void undescribed(const char* what);

// A function that can be written down: given by its name ("glorot_uniform"), made by a function with settings
// (initializers::random_normal({.stddev = 0.1})), or any C++ callable, which has no description. `Family` finds one by
// name or description: static Described find(const Config&); kWhat says what it is, kNone what Keras writes for none
// (null where a family does not say).
template <class Family, class Signature>
class Described {
 public:
  using Function = std::function<Signature>;

  Described() = default;                                                         // none
  Described(const char* name) : Described(Family::find(Config(name))) {}         // NOLINT: implicit, as all below
  Described(const std::string& name) : Described(Family::find(Config(name))) {}  // NOLINT
  Described(std::nullptr_t) {}                                                   // NOLINT
  template <class F>
    requires std::constructible_from<Function, F> && (!std::same_as<std::decay_t<F>, Described>) &&
             (!std::convertible_to<F, std::string>) && (!std::same_as<std::decay_t<F>, std::nullptr_t>)
  Described(F f) : function_(std::make_shared<Function>(std::move(f))) {}  // NOLINT
  Described(Config description, Function f)
      : description_(std::move(description)), function_(std::make_shared<Function>(std::move(f))) {}

  explicit operator bool() const { return function_ != nullptr; }
  template <class... Args>
  auto operator()(Args&&... args) const {
    return (*function_)(std::forward<Args>(args)...);
  }
  // What Keras writes: a name, or {"class_name": ..., "config": {...}}. An Error for a bare callable.
  Config config() const {
    if (function_ && description_.is_null()) undescribed(Family::kWhat);
    if constexpr (requires { Family::kNone; }) {
      if (!function_) return Family::kNone;
    }
    return description_;
  }
  static Described from_config(const Config& config) { return config.is_null() ? Described() : Family::find(config); }

 private:
  Config description_;
  std::shared_ptr<const Function> function_;
};

// {"class_name": name, "config": {...}}, Keras's way to write an object down.
inline Config object_config(const std::string& class_name, Config::Map settings) {
  return Config::Map{{"class_name", class_name}, {"config", std::move(settings)}};
}

}  // namespace runnel::keras
