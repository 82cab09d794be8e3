#include "runnel/base/caller_line.h"
#include "runnel/keras/activations.h"
#include "runnel/keras/find_named.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"

namespace runnel::keras {
namespace constraints {
namespace {

constexpr double kNormEpsilon = 1e-7;  // what Keras adds to every norm it divides by

Tensor norms_along(const Tensor& w, const AxisTuple& axis) { return sqrt(reduce_sum(square(w), axis, true)); }

constexpr NamedMaker<Constraint> kConstraints[] = {
    maker<Constraint, MaxNormOptions, max_norm>("MaxNorm", "max_norm"),
    maker<Constraint, MinMaxNormOptions, min_max_norm>("MinMaxNorm", "min_max_norm"),
    maker<Constraint, non_neg>("NonNeg", "non_neg"),
    maker<Constraint, UnitNormOptions, unit_norm>("UnitNorm", "unit_norm"),
};

}  // namespace

Constraint max_norm(const MaxNormOptions& options) {
  return described<Constraint>("MaxNorm", options, [=](const Tensor& w) {
    const Tensor norms = norms_along(w, options.axis);
    return w * (clip_by_value(norms, 0, options.max_value) / (norms + kNormEpsilon));
  });
}

Constraint min_max_norm(const MinMaxNormOptions& options) {
  return described<Constraint>("MinMaxNorm", options, [=](const Tensor& w) {
    const auto& [min_value, max_value, rate, axis] = options;
    const Tensor norms = norms_along(w, axis);
    const Tensor wanted = clip_by_value(norms, min_value, max_value) * rate + norms * (1 - rate);
    return w * (wanted / (norms + kNormEpsilon));
  });
}

Constraint non_neg() {
  return {object_config("NonNeg", {}), [](const Tensor& w) { return w * cast(w >= 0, w.dtype()); }};
}

Constraint unit_norm(const UnitNormOptions& options) {
  return described<Constraint>("UnitNorm", options,
                               [=](const Tensor& w) { return w / (norms_along(w, options.axis) + kNormEpsilon); });
}

}  // namespace constraints

Constraint Constraints::find(const Config& description, SourceSite where) {
  return at_caller(where, [&]() -> Constraint { return find_named(kWhat, constraints::kConstraints, description); });
}
void Constraints::list(std::vector<ClassSettings>& all) { list_named(kWhat, constraints::kConstraints, all); }

}  // namespace runnel::keras
