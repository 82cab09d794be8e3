#include "runnel/base/caller_line.h"
#include "runnel/keras/activations.h"
#include "runnel/keras/find_named.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"

namespace runnel::keras {
namespace regularizers {
namespace {

constexpr NamedMaker<Regularizer> kRegularizers[] = {
    maker<Regularizer, L1Options, l1>("L1", "l1"),
    maker<Regularizer, L2Options, l2>("L2", "l2"),
    maker<Regularizer, L1L2Options, l1_l2>("L1L2", "l1_l2"),
};

}  // namespace

Regularizer l1(const L1Options& options) {
  return described<Regularizer>("L1", options, [=](const Tensor& w) { return reduce_sum(abs(w)) * options.l1; });
}

Regularizer l2(const L2Options& options) {
  return described<Regularizer>("L2", options, [=](const Tensor& w) { return reduce_sum(square(w)) * options.l2; });
}

Regularizer l1_l2(const L1L2Options& options) {
  return described<Regularizer>("L1L2", options, [=](const Tensor& w) {
    return reduce_sum(abs(w)) * options.l1 + reduce_sum(square(w)) * options.l2;
  });
}

}  // namespace regularizers

Regularizer Regularizers::find(const Config& description, SourceSite where) {
  return at_caller(where, [&]() -> Regularizer { return find_named(kWhat, regularizers::kRegularizers, description); });
}
void Regularizers::list(std::vector<ClassSettings>& all) { list_named(kWhat, regularizers::kRegularizers, all); }

}  // namespace runnel::keras
