// Optimizer updates: one op per rule, dense and for rows of IndexedSlices.
#include "runnel/ops/training.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/update_loop.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/training_rules.h"

namespace runnel {
namespace {

// Inputs of a rule's op: the variable, its slots, then the scalars with the gradient (and indices) among them.
template <class Rule>
struct Layout {
  static constexpr int kSlots = static_cast<int>(Rule::slots.size());
  static constexpr int kScalars = static_cast<int>(Rule::scalars.size());
  static constexpr int kGrad = 1 + kSlots + Rule::grad_after;
  static constexpr int scalar(int i, bool sparse) {
    return 1 + kSlots + i + (i >= Rule::grad_after ? (sparse ? 2 : 1) : 0);
  }
};

// The variable and its slots, locked in a fixed order, their values ready to be written.
template <class Rule>
class Locked {
 public:
  explicit Locked(KernelContext& c) {
    std::vector<VariableSlot*> order;
    for (int i = 0; i <= Layout<Rule>::kSlots; ++i) slots_[i] = &variable_slot(c.in(i));
    order.assign(slots_, slots_ + Layout<Rule>::kSlots + 1);
    std::sort(order.begin(), order.end());
    if (std::adjacent_find(order.begin(), order.end()) != order.end()) {
      throw invalid_argument("the variable and its slots must be different variables");
    }
    for (VariableSlot* s : order) locks_.emplace_back(s->mutex);
    for (VariableSlot* s : slots_) {
      s->require_value();
      if (!(s->value.shape() == slots_[0]->value.shape())) {
        throw invalid_argument("{} has shape {}, its slot {} {}", slots_[0]->describe(), slots_[0]->value.shape().str(),
                               s->describe(), s->value.shape().str());
      }
    }
  }
  const Shape& shape() const { return slots_[0]->value.shape(); }
  const VariableSlot& variable() const { return *slots_[0]; }
  template <class T>
  void data(T** p) {
    for (int i = 0; i <= Layout<Rule>::kSlots; ++i) {
      if (slots_[i]->dtype != dtype_of<T>) {
        throw invalid_argument("{} holds {}, the gradient is {}", slots_[i]->describe(), dtype_name(slots_[i]->dtype),
                               dtype_name(dtype_of<T>));
      }
    }
    for (int i = 0; i <= Layout<Rule>::kSlots; ++i) p[i] = slots_[i]->writable().template mutable_data<T>();
  }

 private:
  VariableSlot* slots_[Layout<Rule>::kSlots + 1];
  std::vector<std::unique_lock<std::mutex>> locks_;
};

template <class Rule, class T>
auto prepared(KernelContext& c, bool sparse) {
  using C = cpu::compute_t<T>;
  C scalars[std::max(1, Layout<Rule>::kScalars)];
  for (int i = 0; i < Layout<Rule>::kScalars; ++i) {
    const Tensor& s = c.in(Layout<Rule>::scalar(i, sparse));
    if (s.num_elements() != 1)
      throw invalid_argument("{} must be a scalar, got shape {}", Rule::scalars[static_cast<size_t>(i)],
                             s.shape().str());
    scalars[i] = static_cast<C>(*s.data<T>());
  }
  return Rule::template prepare<C>(scalars, c.attrs<typename Rule::Attrs>());
}

template <class Rule, class T, class Step>
void step_element(T* const* p, int64_t i, T g, const Step& step) {
  using C = cpu::compute_t<T>;
  constexpr int n = Layout<Rule>::kSlots + 1;
  C x[n];
  for (int k = 0; k < n; ++k) x[k] = static_cast<C>(p[k][i]);
  step(x, static_cast<C>(g));
  for (int k = 0; k < n; ++k) p[k][i] = static_cast<T>(x[k]);
}

template <class Rule, class T>
void apply_dense(KernelContext& c) {
  const auto step = prepared<Rule, T>(c, false);
  const Tensor& grad = c.in(Layout<Rule>::kGrad);
  Locked<Rule> locked(c);
  if (!(grad.shape() == locked.shape())) {
    throw invalid_argument("{} has shape {}, the gradient {}", locked.variable().describe(), locked.shape().str(),
                           grad.shape().str());
  }
  T* p[Layout<Rule>::kSlots + 1];
  locked.data(p);
  const T* g = grad.data<T>();
  cpu::update_loop<T>(grad.num_elements(), [p, g, step](int64_t i) { step_element<Rule>(p, i, g[i], step); });
}

template <class Rule, class T>
void apply_rows(KernelContext& c) {
  const auto step = prepared<Rule, T>(c, true);
  const Tensor& grad = c.in(Layout<Rule>::kGrad);
  const Dims rows = int_values(c.in(Layout<Rule>::kGrad + 1));
  Locked<Rule> locked(c);
  const Shape shape = locked.shape();  // a copy: writing may replace the value
  Dims expected = shape.dims();
  if (expected.empty()) throw invalid_argument("{} is a scalar: it has no rows", locked.variable().describe());
  expected[0] = static_cast<int64_t>(rows.size());
  if (!(grad.shape().dims() == expected)) {
    throw invalid_argument("{} indices need a gradient of shape {}, got {}", rows.size(), Shape(expected).str(),
                           grad.shape().str());
  }
  for (int64_t r : rows) {
    if (r < 0 || r >= shape[0]) {
      throw invalid_argument("index {} is outside {} of shape {}", r, locked.variable().describe(), shape.str());
    }
  }
  T* p[Layout<Rule>::kSlots + 1];
  locked.data(p);
  const int64_t width = shape[0] == 0 ? 0 : shape.num_elements() / shape[0];
  for (size_t k = 0; k < rows.size(); ++k) {  // in order: an index may come twice
    const T* g = grad.data<T>() + static_cast<int64_t>(k) * width;
    for (int64_t j = 0; j < width; ++j) step_element<Rule>(p, rows[k] * width + j, g[j], step);
  }
}

template <class Rule>
void define_rule(Registry& r, const char* name, bool sparse) {
  auto b = r.define<typename Rule::Attrs>(name).type("T", floating);
  b.in("var", DType::resource);
  for (const char* slot : Rule::slots) b.in(slot, DType::resource);
  for (int i = 0; i <= static_cast<int>(Rule::scalars.size()); ++i) {
    if (i == Rule::grad_after) {
      b.in(Rule::grad, "T");
      if (sparse) b.in_host("indices", "Tindices");
    }
    if (i < static_cast<int>(Rule::scalars.size())) b.in(Rule::scalars[static_cast<size_t>(i)], "T");
  }
  b.shape([](InferContext&) {}).stateful().doc(Rule::doc);
  if (sparse) {
    b.cpu([]<class T>(KernelContext& c) { apply_rows<Rule, T>(c); });
  } else {
    b.cpu([]<class T>(KernelContext& c) { apply_dense<Rule, T>(c); });
  }
}

}  // namespace

void register_training(Registry& r) {
  define_rule<rules::GradientDescent>(r, "ResourceApplyGradientDescent", false);
  define_rule<rules::Momentum>(r, "ResourceApplyMomentum", false);
  define_rule<rules::Momentum>(r, "ResourceSparseApplyMomentum", true);
  define_rule<rules::KerasMomentum>(r, "ResourceApplyKerasMomentum", false);
  define_rule<rules::KerasMomentum>(r, "ResourceSparseApplyKerasMomentum", true);
  define_rule<rules::Adam>(r, "ResourceApplyAdam", false);
  define_rule<rules::AdamWithAmsgrad>(r, "ResourceApplyAdamWithAmsgrad", false);
  define_rule<rules::RMSProp>(r, "ResourceApplyRMSProp", false);
  define_rule<rules::RMSProp>(r, "ResourceSparseApplyRMSProp", true);
  define_rule<rules::CenteredRMSProp>(r, "ResourceApplyCenteredRMSProp", false);
  define_rule<rules::CenteredRMSProp>(r, "ResourceSparseApplyCenteredRMSProp", true);
  define_rule<rules::Adagrad>(r, "ResourceApplyAdagrad", false);
  define_rule<rules::Adagrad>(r, "ResourceSparseApplyAdagrad", true);
  define_rule<rules::AdagradV2>(r, "ResourceApplyAdagradV2", false);
  define_rule<rules::AdagradV2>(r, "ResourceSparseApplyAdagradV2", true);
  define_rule<rules::Adadelta>(r, "ResourceApplyAdadelta", false);
  define_rule<rules::Adadelta>(r, "ResourceSparseApplyAdadelta", true);
  define_rule<rules::AdaMax>(r, "ResourceApplyAdaMax", false);
  define_rule<rules::Ftrl>(r, "ResourceApplyFtrl", false);
  define_rule<rules::Ftrl>(r, "ResourceSparseApplyFtrl", true);
  define_rule<rules::FtrlV2>(r, "ResourceApplyFtrlV2", false);
  define_rule<rules::FtrlV2>(r, "ResourceSparseApplyFtrlV2", true);
}

}  // namespace runnel
