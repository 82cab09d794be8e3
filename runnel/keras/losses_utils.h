#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "runnel/op/operand.h"
#include "runnel/tensor/tensor.h"

// How labels, predictions and weights are brought together: what losses and metrics share.
namespace runnel::keras::losses {

inline constexpr double kEpsilon = 1e-7;  // how near to 0 and 1 a probability may come

// A text as an argument of a template: the name of a class that is made from a function.
template <size_t N>
struct FixedText {
  char text[N];
  constexpr FixedText(const char (&t)[N]) {  // NOLINT: implicit
    for (size_t i = 0; i < N; ++i) text[i] = t[i];
  }
};

// Takes part in the names of losses and metrics: an object that is called with (y_true, y_pred) and says its name.
template <class F>
concept HasName = requires {
  { F::kName } -> std::convertible_to<std::string_view>;
};

// To be called while an Error is caught: throws it on, with the line of the caller.
[[noreturn]] RUNNEL_API void rethrow_at(const SourceSite& where);
template <class F>
Tensor called_at(const SourceSite& where, const F& function) {
  try {
    return function();
  } catch (...) {
    rethrow_at(where);
  }
}

// A function of labels and predictions under a name.
template <FixedText name, Tensor (*function)(const Tensor&, const Tensor&)>
struct PairFunctionOf {
  static constexpr const char* kName = name.text;
  Tensor operator()(const Tensor& y_true, const Operand& y_pred) const {
    return called_at(y_pred.where(), [&] { return function(y_true, y_pred.value()); });
  }
};

// A function of your own under its C++ name: .metrics = {keras::named<hits>}.
template <auto function>
struct FunctionNamed {
  static constexpr std::string_view name_in_signature() {
    // "... [with auto function = {anonymous}::hits; ...]", or "[function = &(anonymous namespace)::hits]".
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find("function = ") + 11);
    constexpr std::string_view anonymous = "(anonymous namespace)";
    if (const size_t at = text.find(anonymous); at != std::string_view::npos) text.remove_prefix(at + anonymous.size());
    text = text.substr(0, text.find_first_of(";]("));
    const size_t last = text.find_last_of(":&");
    return last == std::string_view::npos ? text : text.substr(last + 1);
  }
  static constexpr std::string_view kName = name_in_signature();
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred) const { return function(y_true, y_pred); }
};

// The same called from within the library, where no line of the user is known.
template <class F>
auto without_line(const F& function) {
  return [function](const Tensor& y_true, const Tensor& y_pred) -> Tensor {
    if constexpr (std::invocable<const F&, const Tensor&, const Operand&>) {
      return function(y_true, Operand(y_pred, SourceSite{}));
    } else {
      return function(y_true, y_pred);
    }
  };
}

struct Matched {
  Tensor y_true;
  Tensor y_pred;
};
// A last dimension of 1 that only one of the two has is dropped.
RUNNEL_API Matched match_ranks(const Tensor& y_true, const Tensor& y_pred);

// The weights as they multiply `values`, in their dtype: with one dimension more or less, a last dimension of 1 is
// dropped or added. An Error naming `who` where they do not broadcast to the values.
RUNNEL_API Tensor match_weight(const std::string& who, const Tensor& sample_weight, const Tensor& values);

struct TrainingValues {
  Tensor y_true;
  Tensor y_pred;
  Tensor sample_weight;
};
// What a model does to data before its losses and metrics see them: vectors beside a matrix of predictions become
// columns, and labels take the dtype of the predictions where both are floating or both integers.
RUNNEL_API TrainingValues match_dtype_and_rank(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight);

// The losses times their weights (if any), by `reduction`: "none", "sum", or "auto" and "sum_over_batch_size": the sum
// divided by the number of losses, 0 where there are none. `mask` (bool, shaped like the losses, or undefined) tells
// which losses count; the others are no part of that number.
RUNNEL_API Tensor compute_weighted_loss(const std::string& who, const Tensor& losses, const Tensor& sample_weight,
                                        const Tensor& mask, const std::string& reduction);

// The tensor itself where it has the dtype.
Tensor to_dtype(const Tensor& t, DType dtype);
// y_true in the dtype of y_pred; an Error naming `who` where their shapes do not broadcast.
Tensor labels_for(const char* who, const Tensor& y_true, const Tensor& y_pred);
// Labels that are class numbers, int32 or int64, one for every row of y_pred (whose last dimension is the classes).
// An Error naming `who` where there is another number of them.
Tensor class_labels(const char* who, const Tensor& y_true, const Tensor& y_pred);

}  // namespace runnel::keras::losses
