#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runnel/keras/layer.h"
#include "runnel/keras/positional.h"

// Layers whose settings are a struct, and how they are made.
namespace runnel::keras {

// What is left for the base class of a layer with options of its own.
template <class O>
LayerOptions base_layer_options(const O& o, const char* class_name) {
  LayerOptions base{.name = o.name.empty() ? unique_name(to_snake_case(class_name)) : o.name,
                    .dtype = o.dtype,
                    .trainable = o.trainable};
  if constexpr (requires { o.input_shape; }) {  // RUNNEL_LAYER_OPTIONS
    base.batch_input_shape = o.batch_input_shape;
    PartialShape sample = o.input_shape;
    if constexpr (requires { o.default_input_shape(); }) {
      if (!sample.has_rank()) sample = o.default_input_shape();
    }
    if (!base.batch_input_shape.has_rank() && sample.has_rank()) {
      Dims dims{kUnknownDim};
      dims.insert(dims.end(), sample.begin(), sample.end());
      base.batch_input_shape = PartialShape(dims);
    }
  }
  return base;
}

// A layer whose settings are a struct with `name`, `dtype`, `trainable`, a list of fields() and, if it has main
// arguments, `using Positional` (positional.h):
//   class Dense : public LayerOf<Dense, DenseOptions>
// `Self::kClassName` is its name in configurations. A layer not yet used may be moved into a model or applied in
// place: x = Dense({.units = 10})(x). Base is Layer or a kind of layer with the same constructors.
template <class Self, class OptionsType, class Base = Layer>
class LayerOf : public Base {
 public:
  using Options = OptionsType;
  using First = typename PositionalOf<Options>::First;
  using Second = typename PositionalOf<Options>::Second;
  explicit LayerOf(Options options = {})
      : Base(base_layer_options(options, Self::kClassName)), options_(std::move(options)) {}
  LayerOf(Layer* parent, const std::string& attribute, Options options = {})
      : Base(parent, attribute, base_layer_options(options, Self::kClassName)), options_(std::move(options)) {}
  // Main arguments, then settings. A single one is implicit and never taken from braces, so that Dense({10}) is
  // Dense(Dense(10)) and nothing else.
  template <class Value>
    requires(!std::derived_from<std::remove_cvref_t<Value>, LayerOf> && std::convertible_to<Value, First>)
  LayerOf(Value&& value) : LayerOf(with_one(std::forward<Value>(value))) {}  // NOLINT
  explicit LayerOf(typename PositionalOf<OptionsType>::Several first) : LayerOf(with({}, first)) {}
  LayerOf(First first, Options options) : LayerOf(with(std::move(options), first)) {}
  LayerOf(First first, Second second, Options options = {}) : LayerOf(with(std::move(options), first, second)) {}
  LayerOf(Layer* parent, const std::string& attribute, First first) : LayerOf(parent, attribute, with({}, first)) {}
  LayerOf(Layer* parent, const std::string& attribute, typename PositionalOf<OptionsType>::Both both)
      : LayerOf(parent, attribute, with({}, both.one, both.other)) {}
  LayerOf(Layer* parent, const std::string& attribute, First first, Options options)
      : LayerOf(parent, attribute, with(std::move(options), first)) {}
  LayerOf(Layer* parent, const std::string& attribute, First first, Second second, Options options = {})
      : LayerOf(parent, attribute, with(std::move(options), first, second)) {}

  const Options& options() const { return options_; }
  std::string class_name() const override { return Self::kClassName; }
  Config get_config() const override { return with_options(Base::get_config(), options_); }
  static std::shared_ptr<Self> from_config(const Config& config) {
    Options options;
    read_fields(options, all_fields(), config);
    return std::make_shared<Self>(std::move(options));
  }

  // A layer used in place goes to the heap, where a functional model can keep it.
  Tensor operator()(const Tensor& input, const CallArgs& args = {}, SourceSite where = SourceSite::current()) && {
    return (*to_heap())(input, args, where);
  }
  Nest operator()(const Nest& inputs, const CallArgs& args = {}, SourceSite where = SourceSite::current()) && {
    return (*to_heap())(inputs, args, where);
  }
  Tensor operator()(const Tensor& input, const CallArgs& args = {}, SourceSite where = SourceSite::current()) & {
    return Layer::operator()(input, args, where);
  }
  Nest operator()(const Nest& inputs, const CallArgs& args = {}, SourceSite where = SourceSite::current()) & {
    return Layer::operator()(inputs, args, where);
  }

 protected:
  Options options_;

 private:
  template <class... Values>
  static Options with(Options options, Values&... values) {
    return PositionalOf<Options>::with(std::move(options), Self::kClassName, values...);
  }
  static Options with_one(First first) { return with({}, first); }
  static constexpr auto all_fields() { return joined_fields(layer_fields<Options>(), Options::fields()); }
  std::shared_ptr<Layer> to_heap() { return std::make_shared<Self>(static_cast<Self&&>(*this)); }
};

// A layer on the heap that is called like a function: auto dense = keras::make<Dense>({.units = 10}); y = dense(x).
template <class L>
class Shared : public std::shared_ptr<L> {
 public:
  Shared(std::shared_ptr<L> layer) : std::shared_ptr<L>(std::move(layer)) {}  // NOLINT: implicit
  template <class First, class... Rest>
    requires(sizeof...(Rest) > 0 || !std::convertible_to<First, const Tensor&>)
  auto operator()(First&& first, Rest&&... rest) const {
    return (**this)(std::forward<First>(first), std::forward<Rest>(rest)...);
  }
  Tensor operator()(const Tensor& input, const CallArgs& args = {}, SourceSite where = SourceSite::current()) const {
    return (**this)(input, args, where);
  }
  // add({a, b}): of layers that take several tensors.
  auto operator()(std::initializer_list<Tensor> inputs, SourceSite where = SourceSite::current()) const {
    return (**this)(std::vector<Tensor>(inputs), {}, where);
  }
};
template <class L>
Shared<L> make(typename L::Options options = {}) {
  return std::make_shared<L>(std::move(options));
}
template <class L>
Shared<L> make(typename L::First first) {
  return std::make_shared<L>(std::move(first));
}
template <class L>
Shared<L> make(typename PositionalOf<typename L::Options>::Both both) {
  return std::make_shared<L>(std::move(both.one), std::move(both.other));
}
template <class L>
Shared<L> make(typename L::First first, typename L::Options options) {
  return std::make_shared<L>(std::move(first), std::move(options));
}
template <class L>
Shared<L> make(typename L::First first, typename L::Second second, typename L::Options options = {}) {
  return std::make_shared<L>(std::move(first), std::move(second), std::move(options));
}

// Makes a layer known by its class name alone, as Keras's own are; see register_keras_serializable.
template <class L>
void register_layer() {
  utils::register_keras_serializable<L>("");
}

}  // namespace runnel::keras
