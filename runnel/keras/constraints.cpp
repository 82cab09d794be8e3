#include "runnel/keras/activations.h"
#include "runnel/keras/find_named.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"

namespace runnel::keras {
namespace {

constexpr double kNormEpsilon = 1e-7;  // what Keras adds to every norm it divides by

using AxisList = std::vector<int64_t>;

struct MaxNormOptions {
  double max_value = 2;
  AxisList axis = {0};
  static constexpr auto fields() {
    return field_list(field("max_value", &MaxNormOptions::max_value), field("axis", &MaxNormOptions::axis));
  }
};
struct MinMaxNormOptions {
  double min_value = 0, max_value = 1, rate = 1;
  AxisList axis = {0};
  static constexpr auto fields() {
    using O = MinMaxNormOptions;
    return field_list(field("min_value", &O::min_value), field("max_value", &O::max_value), field("rate", &O::rate),
                      field("axis", &O::axis));
  }
};
struct UnitNormOptions {
  AxisList axis = {0};
  static constexpr auto fields() { return field_list(field("axis", &UnitNormOptions::axis)); }
};

// Keras writes one axis as a number, several as a list.
template <class Options>
Config constraint_config(const char* class_name, const Options& options) {
  Config settings = options_to_config(options);
  if (options.axis.size() == 1) settings.set("axis", options.axis[0]);
  return object_config(class_name, settings.entries());
}

Tensor norms_along(const Tensor& w, const AxisList& axis) { return sqrt(reduce_sum(square(w), axis, true)); }

constexpr NamedMaker<Constraint> kConstraints[] = {
    {"MaxNorm", "max_norm",
     [](const Config& c) {
       const auto o = options_from_config<MaxNormOptions>(c);
       return constraints::max_norm(o.max_value, o.axis);
     }},
    {"MinMaxNorm", "min_max_norm",
     [](const Config& c) {
       const auto o = options_from_config<MinMaxNormOptions>(c);
       return constraints::min_max_norm(o.min_value, o.max_value, o.rate, o.axis);
     }},
    {"NonNeg", "non_neg", [](const Config&) { return constraints::non_neg(); }},
    {"UnitNorm", "unit_norm",
     [](const Config& c) { return constraints::unit_norm(options_from_config<UnitNormOptions>(c).axis); }},
};

}  // namespace

Constraint Constraints::find(const Config& description) { return find_named(kWhat, kConstraints, description); }

namespace constraints {

Constraint max_norm(double max_value, const std::vector<int64_t>& axis) {
  return {constraint_config("MaxNorm", MaxNormOptions{max_value, axis}), [=](const Tensor& w) {
            const Tensor norms = norms_along(w, axis);
            return w * (clip_by_value(norms, 0, max_value) / (norms + kNormEpsilon));
          }};
}

Constraint min_max_norm(double min_value, double max_value, double rate, const std::vector<int64_t>& axis) {
  return {constraint_config("MinMaxNorm", MinMaxNormOptions{min_value, max_value, rate, axis}), [=](const Tensor& w) {
            const Tensor norms = norms_along(w, axis);
            const Tensor wanted = clip_by_value(norms, min_value, max_value) * rate + norms * (1 - rate);
            return w * (wanted / (norms + kNormEpsilon));
          }};
}

Constraint non_neg() {
  return {object_config("NonNeg", {}), [](const Tensor& w) { return w * cast(w >= 0, w.dtype()); }};
}

Constraint unit_norm(const std::vector<int64_t>& axis) {
  return {constraint_config("UnitNorm", UnitNormOptions{axis}),
          [=](const Tensor& w) { return w / (norms_along(w, axis) + kNormEpsilon); }};
}

}  // namespace constraints
}  // namespace runnel::keras
