// Optimizer updates: one op per rule, dense and for rows of IndexedSlices.
#include "runnel/ops/training.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/update_loop.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/training_keras_rules.h"
#include "runnel/ops/training_rules.h"
#include "runnel/ops/variable_slot.h"

namespace runnel {
namespace {

// Inputs of a rule's op: the variable, its slots, then the scalars with the gradient (and indices) among them.
template <class Rule>
struct Layout {
  static constexpr int kSlots = static_cast<int>(Rule::slots.size());
  static constexpr int kScalars = static_cast<int>(Rule::scalars.size());
  static constexpr int kGrad = 1 + kSlots + Rule::grad_after;
  static constexpr int sparse_scalar(int i) { return 1 + kSlots + i + (i >= Rule::grad_after ? 2 : 0); }
};

// n variables and their slots (slot k of variable i is input k * n + i), locked in a fixed order, their values ready to
// be written. `width` is how many of these a variable has, itself included.
class Locked {
 public:
  Locked(KernelContext& c, int n, int width) : n_(n), width_(width) {
    for (int i = 0; i < n * width; ++i) slots_.push_back(&variable_slot(c.in(i)));
    std::vector<VariableSlot*> order = slots_;
    std::sort(order.begin(), order.end());
    if (std::adjacent_find(order.begin(), order.end()) != order.end()) {
      throw invalid_argument("the variable and its slots must be different variables");
    }
    for (VariableSlot* s : order) locks_.emplace_back(s->mutex);
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < width; ++k) {
        const VariableSlot& s = slot(i, k);
        s.require_value();
        if (!(s.value.shape() == shape(i))) {
          throw invalid_argument("{} has shape {}, its slot {} {}", variable(i).describe(), shape(i).str(),
                                 s.describe(), s.value.shape().str());
        }
      }
    }
  }
  const Shape& shape(int i) const { return variable(i).value.shape(); }

  // The gradient of variable i: its dtype, and the shape that the variable has.
  void check_dense(int i, const Tensor& grad) const {
    if (!(grad.shape() == shape(i))) {
      throw invalid_argument("{} has shape {}, the gradient {}", variable(i).describe(), shape(i).str(),
                             grad.shape().str());
    }
    check_dtype(i, grad.dtype());
  }
  // A gradient of rows of the only variable.
  void check_rows(const Tensor& grad, const Dims& rows) const {
    Dims expected = shape(0).dims();
    if (expected.empty()) throw invalid_argument("{} is a scalar: it has no rows", variable(0).describe());
    expected[0] = static_cast<int64_t>(rows.size());
    if (!(grad.shape().dims() == expected)) {
      throw invalid_argument("{} indices need a gradient of shape {}, got {}", rows.size(), Shape(expected).str(),
                             grad.shape().str());
    }
    for (int64_t r : rows) {
      if (r < 0 || r >= shape(0)[0]) {
        throw invalid_argument("index {} is outside {} of shape {}", r, variable(0).describe(), shape(0).str());
      }
    }
    check_dtype(0, grad.dtype());
  }
  // Where the values of variable i and its slots lie, for writing.
  template <class T>
  void data(T** p, int i) {
    for (int k = 0; k < width_; ++k) p[k] = slot(i, k).writable().template mutable_data<T>();
  }

 private:
  VariableSlot& slot(int i, int k) const { return *slots_[static_cast<size_t>(k * n_ + i)]; }
  const VariableSlot& variable(int i) const { return slot(i, 0); }
  void check_dtype(int i, DType dtype) const {
    for (int k = 0; k < width_; ++k) {
      if (slot(i, k).dtype != dtype) {
        throw invalid_argument("{} holds {}, the gradient is {}", slot(i, k).describe(), dtype_name(slot(i, k).dtype),
                               dtype_name(dtype));
      }
    }
  }

  int n_;
  int width_;
  std::vector<VariableSlot*> slots_;
  std::vector<std::unique_lock<std::mutex>> locks_;
};

void check_scalar(const Tensor& t, const char* name) {
  if (t.rank() != 0) throw invalid_argument("{} must be a scalar, got shape {}", name, t.shape().str());
}

// `scalar(i)` is where the input with scalar i stands.
template <class Rule, class T, class At>
auto prepared(KernelContext& c, At scalar) {
  using C = cpu::compute_t<T>;
  C scalars[std::max(1, Layout<Rule>::kScalars)];
  for (int i = 0; i < Layout<Rule>::kScalars; ++i) {
    check_scalar(c.in(scalar(i)), Rule::scalars[static_cast<size_t>(i)]);
    scalars[i] = static_cast<C>(*c.in<T>(scalar(i)));
  }
  return Rule::template prepare<C>(scalars, c.attrs<typename Rule::Attrs>());
}

// No loop over the slots: the one over elements around it becomes vectors only without.
template <class Rule, class T, class Step>
void step_element(T* const* p, int64_t i, T g, const Step& step) {
  using C = cpu::compute_t<T>;
  [&]<size_t... k>(std::index_sequence<k...>) {
    C x[] = {static_cast<C>(p[k][i])...};
    step(x, static_cast<C>(g));
    ((p[k][i] = static_cast<T>(x[k])), ...);
  }(std::make_index_sequence<Layout<Rule>::kSlots + 1>());
}

// Updates any number of variables: all ranges of all of them are one list of tasks. The inputs are those of one update,
// but for lists in place of the variable, each slot and the gradient.
template <class Rule, class T>
void apply_dense(KernelContext& c) {
  constexpr int kWidth = Layout<Rule>::kSlots + 1;
  const int n = (c.num_inputs() - Layout<Rule>::kScalars) / (kWidth + 1);
  const int first_grad = n * kWidth + Rule::grad_after;
  const auto step = prepared<Rule, T>(c, [&](int i) { return n * kWidth + i + (i >= Rule::grad_after ? n : 0); });
  Locked locked(c, n, kWidth);
  for (int i = 0; i < n; ++i) locked.check_dense(i, c.in(first_grad + i));
  struct Range {
    std::array<T*, kWidth> p;
    const T* g;
    int64_t begin, end;
  };
  std::vector<Range> ranges;
  for (int i = 0; i < n; ++i) {
    Range r{};
    locked.data(r.p.data(), i);
    r.g = c.in<T>(first_grad + i);
    const int64_t size = c.in(first_grad + i).num_elements();
    for (; r.begin < size; r.begin = r.end) {
      r.end = std::min(size, r.begin + cpu::kGrain);
      ranges.push_back(r);
    }
  }
  parallel_for(static_cast<int64_t>(ranges.size()), 1, [&](int64_t at, int64_t) {
    const Range& r = ranges[static_cast<size_t>(at)];
    cpu::update_range<T>(r.begin, r.end,
                         [p = r.p, g = r.g, step](int64_t i) { step_element<Rule>(p.data(), i, g[i], step); });
  });
}

template <class Rule, class T>
void apply_rows(KernelContext& c) {
  const auto step = prepared<Rule, T>(c, [](int i) { return Layout<Rule>::sparse_scalar(i); });
  const Tensor& grad = c.in(Layout<Rule>::kGrad);
  const Dims rows = int_values(c.in(Layout<Rule>::kGrad + 1));
  Locked locked(c, 1, Layout<Rule>::kSlots + 1);
  locked.check_rows(grad, rows);
  const Shape shape = locked.shape(0);  // a copy: writing may replace the value
  T* p[Layout<Rule>::kSlots + 1];
  locked.data(p, 0);
  const int64_t width = shape[0] == 0 ? 0 : shape.num_elements() / shape[0];
  for (size_t k = 0; k < rows.size(); ++k) {  // in order: an index may come twice
    const T* g = grad.data<T>() + static_cast<int64_t>(k) * width;
    for (int64_t j = 0; j < width; ++j) step_element<Rule>(p, rows[k] * width + j, g[j], step);
  }
}

template <class Rule>
void define_sparse(Registry& r, const char* name) {
  auto b = r.define<typename Rule::Attrs>(name).type("T", Rule::types);
  b.in("var", DType::resource);
  for (const char* slot : Rule::slots) b.in(slot, DType::resource);
  for (int i = 0; i <= static_cast<int>(Rule::scalars.size()); ++i) {
    if (i == Rule::grad_after) b.in(Rule::grad, "T").type("Tindices", index_types).in_host("indices", "Tindices");
    if (i < static_cast<int>(Rule::scalars.size())) b.in(Rule::scalars[static_cast<size_t>(i)], "T");
  }
  b.shape([](InferContext& c) { c.require_rank(Layout<Rule>::kGrad + 1, 1); }).stateful().doc(Rule::doc);
  b.cpu([]<class T>(KernelContext& c) { apply_rows<Rule, T>(c); });
}

template <size_t N>
struct Name {
  consteval Name(const char (&text)[N]) { std::copy_n(text, N, chars); }  // NOLINT: implicit
  char chars[N];
};

// The op on one variable, and "_Many" of its name on lists of them, which share the scalars.
template <class Rule, Name name>
void define_dense(Registry& r) {
  static constexpr auto many = [] {
    std::array<char, sizeof(name.chars) + 5> text{'_', 'M', 'a', 'n', 'y'};
    std::copy_n(name.chars, sizeof(name.chars), text.begin() + 5);
    return text;
  }();
  auto one = r.define<typename Rule::Attrs>(name.chars).type("T", Rule::types);
  auto all = r.define<typename Rule::Attrs>(many.data()).type("T", Rule::types);
  const auto handle = [&](const char* input) {
    one.in(input, DType::resource);
    all.in_list(input, "N", DType::resource);
  };
  handle("var");
  for (const char* slot : Rule::slots) handle(slot);
  for (int i = 0; i <= static_cast<int>(Rule::scalars.size()); ++i) {
    if (i == Rule::grad_after) {
      one.in(Rule::grad, "T");
      all.in_list(Rule::grad, "N", "T");
    }
    if (i == static_cast<int>(Rule::scalars.size())) break;
    one.in(Rule::scalars[static_cast<size_t>(i)], "T");
    all.in(Rule::scalars[static_cast<size_t>(i)], "T");
  }
  one.shape([](InferContext&) {}).stateful().doc(Rule::doc).many_by(many.data());
  one.cpu([]<class T>(KernelContext& c) { apply_dense<Rule, T>(c); });
  if constexpr (requires(const std::vector<Tensor>& in) { Rule::decompose(in); }) {
    one.decompose([](const std::vector<Tensor>& in, const typename Rule::Attrs&) {
      Rule::decompose(in);
      return std::vector<Tensor>();
    });
  }
  all.shape([](InferContext&) {}).stateful().doc(Rule::doc).many_by(many.data());
  all.cpu([]<class T>(KernelContext& c) { apply_dense<Rule, T>(c); });
  all.decompose([](const std::vector<Tensor>& in, const typename Rule::Attrs& attrs) {
    constexpr size_t kWidth = Rule::slots.size() + 1;
    const size_t n = (in.size() - Rule::scalars.size()) / (kWidth + 1);
    for (size_t i = 0; i < n; ++i) {
      std::vector<Tensor> args;
      for (size_t k = 0; k < kWidth; ++k) args.push_back(in[k * n + i]);
      for (size_t k = 0; k <= Rule::scalars.size(); ++k) {
        const size_t at = n * kWidth + k;
        if (k == Rule::grad_after) args.push_back(in[at + i]);
        if (k < Rule::scalars.size()) args.push_back(in[at + (k >= Rule::grad_after ? n : 0)]);
      }
      if constexpr (requires { Rule::decompose(args); }) {
        Rule::decompose(args);
      } else {
        static const Op<typename Rule::Attrs> op(name.chars);
        op.many(std::vector<Arg>(args.begin(), args.end()), attrs);
      }
    }
    return std::vector<Tensor>();
  });
}

}  // namespace

void register_training(Registry& r) {
  define_dense<rules::GradientDescent, "ResourceApplyGradientDescent">(r);
  define_dense<rules::Momentum, "ResourceApplyMomentum">(r);
  define_sparse<rules::Momentum>(r, "ResourceSparseApplyMomentum");
  define_dense<rules::KerasMomentum, "ResourceApplyKerasMomentum">(r);
  define_sparse<rules::KerasMomentum>(r, "ResourceSparseApplyKerasMomentum");
  define_dense<rules::Adam, "ResourceApplyAdam">(r);
  define_dense<rules::AdamWithAmsgrad, "ResourceApplyAdamWithAmsgrad">(r);
  define_dense<rules::RMSProp, "ResourceApplyRMSProp">(r);
  define_sparse<rules::RMSProp>(r, "ResourceSparseApplyRMSProp");
  define_dense<rules::CenteredRMSProp, "ResourceApplyCenteredRMSProp">(r);
  define_sparse<rules::CenteredRMSProp>(r, "ResourceSparseApplyCenteredRMSProp");
  define_dense<rules::Adagrad, "ResourceApplyAdagrad">(r);
  define_sparse<rules::Adagrad>(r, "ResourceSparseApplyAdagrad");
  define_dense<rules::AdagradV2, "ResourceApplyAdagradV2">(r);
  define_sparse<rules::AdagradV2>(r, "ResourceSparseApplyAdagradV2");
  define_dense<rules::Adadelta, "ResourceApplyAdadelta">(r);
  define_sparse<rules::Adadelta>(r, "ResourceSparseApplyAdadelta");
  define_dense<rules::AdaMax, "ResourceApplyAdaMax">(r);
  define_dense<rules::Ftrl, "ResourceApplyFtrl">(r);
  define_sparse<rules::SparseFtrl>(r, "ResourceSparseApplyFtrl");
  define_dense<rules::FtrlV2, "ResourceApplyFtrlV2">(r);
  define_sparse<rules::SparseFtrlV2>(r, "ResourceSparseApplyFtrlV2");
  define_dense<rules::KerasRMSprop, "_ApplyKerasRMSprop">(r);
  define_dense<rules::KerasCenteredRMSprop, "_ApplyKerasCenteredRMSprop">(r);
  define_dense<rules::KerasAdagrad, "_ApplyKerasAdagrad">(r);
  define_dense<rules::KerasNadam, "_ApplyKerasNadam">(r);
}

}  // namespace runnel
