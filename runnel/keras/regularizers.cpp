#include "runnel/keras/activations.h"
#include "runnel/keras/find_named.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"

namespace runnel::keras {
namespace {

double factor_of(const Config& settings, const char* key) {
  const Config* factor = settings.find(key);
  return factor ? factor->as_double() : 0.01;
}

constexpr NamedMaker<Regularizer> kRegularizers[] = {
    {"L1", "l1", [](const Config& c) { return regularizers::l1(factor_of(c, "l1")); }},
    {"L2", "l2", [](const Config& c) { return regularizers::l2(factor_of(c, "l2")); }},
    {"L1L2", "l1_l2", [](const Config& c) { return regularizers::l1_l2(factor_of(c, "l1"), factor_of(c, "l2")); }},
};

}  // namespace

Regularizer Regularizers::find(const Config& description) { return find_named(kWhat, kRegularizers, description); }

namespace regularizers {

Regularizer l1(double l1) {
  return {object_config("L1", {{"l1", l1}}), [=](const Tensor& w) { return reduce_sum(abs(w)) * l1; }};
}

Regularizer l2(double l2) {
  return {object_config("L2", {{"l2", l2}}), [=](const Tensor& w) { return reduce_sum(square(w)) * l2; }};
}

Regularizer l1_l2(double l1, double l2) {
  return {object_config("L1L2", {{"l1", l1}, {"l2", l2}}),
          [=](const Tensor& w) { return reduce_sum(abs(w)) * l1 + reduce_sum(square(w)) * l2; }};
}

}  // namespace regularizers
}  // namespace runnel::keras
