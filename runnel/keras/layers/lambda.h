#pragma once

#include <concepts>
#include <functional>

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

// What a Lambda applies: any function of a Tensor, or of a structure of them.
class RUNNEL_API LambdaFunction {
 public:
  static constexpr const char* kTypeName = "function";  // in listings of settings
  LambdaFunction() = default;
  template <class F>
    requires(std::invocable<F&, const Tensor&> || std::invocable<F&, const Nest&>)
  LambdaFunction(F f) {  // NOLINT: implicit
    // A function that takes structures takes a Tensor too, by conversion: ask for structures first.
    if constexpr (std::invocable<F&, const Nest&>) {
      of_nest_ = [f = std::move(f)](const Nest& inputs) -> Nest { return f(inputs); };
    } else {
      of_tensor_ = [f = std::move(f)](const Tensor& input) -> Nest { return f(input); };
    }
  }

  bool defined() const { return of_nest_ || of_tensor_; }
  Nest operator()(const Nest& inputs) const { return of_nest_ ? of_nest_(inputs) : of_tensor_(inputs.leaf()); }

 private:
  std::function<Nest(const Nest&)> of_nest_;
  std::function<Nest(const Tensor&)> of_tensor_;
};

struct LambdaOptions {
  LambdaFunction function = {};
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() { return field_list(); }
  static constexpr auto unwritten_fields() {
    return field_list(field("function", &LambdaOptions::function, "of a tensor, or of a structure of them"));
  }
};
// A function as a layer: y = Lambda([](const Tensor& x) { return x * 2; })(x). It has no weights, and no configuration,
// since C++ code cannot be written down: to save a model, make a layer of your own.
class RUNNEL_API Lambda : public LayerOf<Lambda, LambdaOptions> {
 public:
  static constexpr const char* kClassName = "Lambda";
  using LayerOf::LayerOf;
  template <class F>
    requires(std::constructible_from<LambdaFunction, F> && !std::derived_from<F, Layer>)
  explicit Lambda(F function, const std::string& name = "")
      : LayerOf(LambdaOptions{.function = LambdaFunction(std::move(function)), .name = name}) {}
  void prepare() override;
  Nest call(const Nest& inputs, const CallArgs& args) override;
  Config get_config() const override;
};

}  // namespace runnel::keras
