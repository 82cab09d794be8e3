#pragma once

// Classes and functions of your own by name, so that configurations can hold them.

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>

#include "runnel/base/source_site.h"
#include "runnel/keras/config.h"
#include "runnel/tensor/tensor.h"

namespace runnel::keras {

// {"class_name": name, "config": {...}}, Keras's way to write an object down.
inline Config object_config(const std::string& class_name, Config::Map settings) {
  return Config::Map{{"class_name", class_name}, {"config", std::move(settings)}};
}

// "Linear" for any class of that name: without namespaces and template arguments.
RUNNEL_API std::string class_name_of(const std::type_info& type);

// What configurations call a class: its registered name ("Custom>Linear"), `class_name` if it has none.
RUNNEL_API std::string serialized_name(const std::type_info& type, const std::string& class_name);

// The one table of names. A kind is what is asked for: Layer, Optimizer, ..., or a NamedFunction.
class RUNNEL_API SerializableObjects {
 public:
  // What is made is a std::shared_ptr<Kind>.
  using Maker = std::function<std::shared_ptr<void>(const Config& settings)>;
  // An Error if the name stands for something of another type already. Without a package the name stands alone.
  // `names_class`: objects of that type are written by this name.
  static void add(const std::type_info& kind, const std::string& package, const std::string& name,
                  const std::type_info& type, Maker maker, bool names_class = true, const SourceSite& where = {});
  // "Custom>Linear", or "Linear" where only one package has it; empty when there is none.
  static Maker find(const std::type_info& kind, const std::string& name);
  static std::string name_of(const std::type_info& type);  // "" for a class that is not registered

  template <class Kind>
  static std::shared_ptr<Kind> make(const std::string& name, const Config& settings) {
    const Maker maker = find(typeid(Kind), name);
    return maker ? std::static_pointer_cast<Kind>(maker(settings)) : nullptr;
  }
};

// A function with what is written for it.
template <class Signature>
struct NamedFunction {
  Config description;
  std::function<Signature> function;
};
// The functions that can have names: activations, regularizers and constraints; initializers; losses and metrics.
using TensorFunction = Tensor(const Tensor&);
using InitialValueFunction = Tensor(const Shape&, DType);
using PairFunction = Tensor(const Tensor& y_true, const Tensor& y_pred);

template <class T>
concept HasFields = requires { T::fields(); };

namespace detail {

template <class F>
inline constexpr bool is_tensor_function = std::is_invocable_r_v<Tensor, const F&, const Tensor&>;
template <class F>
inline constexpr bool is_initial_value = std::is_invocable_r_v<Tensor, const F&, const Shape&, DType>;
template <class F>
inline constexpr bool is_pair_function = std::is_invocable_r_v<Tensor, const F&, const Tensor&, const Tensor&>;

template <class T>
std::string own_class_name() {
  if constexpr (requires { T::kClassName; }) {
    return T::kClassName;
  } else {
    return class_name_of(typeid(T));
  }
}

template <class T>
std::shared_ptr<T> object_from_config(const Config& config) {
  if constexpr (requires {
                  { T::from_config(config) } -> std::convertible_to<std::shared_ptr<T>>;
                }) {
    return T::from_config(config);
  } else {
    return T::SerializedAs::template from_base_config<T>(config);
  }
}

// A callable class: its fields() are its settings.
template <class T>
T callable_from_config(const Config& config) {
  if constexpr (HasFields<T>) {
    return options_from_config<T>(config);
  } else {
    return T();
  }
}

RUNNEL_API std::string full_name(const std::string& package, const std::string& name);

template <class Signature, class T>
void add_callable_class(const std::string& package, const std::string& name, const SourceSite& where) {
  using Named = NamedFunction<Signature>;
  SerializableObjects::add(
      typeid(Named), package, name, typeid(T),
      [full = full_name(package, name)](const Config& settings) -> std::shared_ptr<void> {
        const T made = callable_from_config<T>(settings);
        Config::Map written;
        if constexpr (HasFields<T>) written = options_to_config(made);
        return std::make_shared<Named>(Named{object_config(full, std::move(written)), made});
      },
      true, where);
}

template <class Signature, class F>
void add_function(const std::string& package, const std::string& name, const F& function, const SourceSite& where) {
  using Named = NamedFunction<Signature>;
  SerializableObjects::add(
      typeid(Named), package, name, typeid(F),
      [function, full = full_name(package, name)](const Config&) -> std::shared_ptr<void> {
        return std::make_shared<Named>(Named{Config(full), std::function<Signature>(function)});
      },
      false, where);
}

}  // namespace detail

namespace utils {

// Makes a class known, so that its objects come back from configurations: a layer, model, optimizer, loss, metric or
// learning rate schedule, or a class whose objects are called as an activation, initializer, regularizer or constraint.
//   struct Linear : keras::Layer { ... };
//   keras::utils::register_keras_serializable<Linear>();  // written as "Custom>Linear"
// An object is made by `static std::shared_ptr<T> from_config(const Config&)` where a class has one; else by the
// constructors it inherits from its base, else without arguments. A class that is called has its settings in fields().
// Names may be used wherever Keras's own can: "Custom>Linear", or "Linear" alone where no other package has it.
template <class T>
void register_keras_serializable(const std::string& package = "Custom", const std::string& name = "",
                                 SourceSite where = SourceSite::current()) {
  const std::string own = name.empty() ? detail::own_class_name<T>() : name;
  if constexpr (requires { typename T::SerializedAs; }) {
    using Kind = typename T::SerializedAs;
    SerializableObjects::add(
        typeid(Kind), package, own, typeid(T),
        [](const Config& settings) -> std::shared_ptr<void> {
          return std::shared_ptr<Kind>(detail::object_from_config<T>(settings));
        },
        true, where);
  } else {
    static_assert(detail::is_tensor_function<T> || detail::is_initial_value<T> || detail::is_pair_function<T>,
                  "the class is neither a part of Keras nor a function that a layer, loss or metric calls");
    if constexpr (detail::is_tensor_function<T>) detail::add_callable_class<TensorFunction, T>(package, own, where);
    if constexpr (detail::is_initial_value<T>) detail::add_callable_class<InitialValueFunction, T>(package, own, where);
    if constexpr (detail::is_pair_function<T>) detail::add_callable_class<PairFunction, T>(package, own, where);
  }
}

// Makes a function known by a name: an activation, initializer, regularizer, constraint, loss or metric.
//   keras::utils::register_keras_serializable("squash", [](const Tensor& x) { return x / (1 + abs(x)); });
//   keras::Dense dense({.units = 4, .activation = "squash"});
template <class F>
  requires(detail::is_tensor_function<F> || detail::is_initial_value<F> || detail::is_pair_function<F>)
void register_keras_serializable(const std::string& name, const F& function, const std::string& package = "Custom",
                                 SourceSite where = SourceSite::current()) {
  if constexpr (detail::is_tensor_function<F>) detail::add_function<TensorFunction>(package, name, function, where);
  if constexpr (detail::is_initial_value<F>) detail::add_function<InitialValueFunction>(package, name, function, where);
  if constexpr (detail::is_pair_function<F>) detail::add_function<PairFunction>(package, name, function, where);
}

// "Custom>Linear"; the name of the class where it is not registered.
template <class T>
std::string get_registered_name() {
  return serialized_name(typeid(T), detail::own_class_name<T>());
}

}  // namespace utils
namespace saving {
using utils::get_registered_name;
using utils::register_keras_serializable;
}  // namespace saving

}  // namespace runnel::keras
