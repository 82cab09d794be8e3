// Connectionist temporal classification.
#include "runnel/ops/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel {
namespace {

struct CtcAttrs {
  bool preprocess_collapse_repeated = false;
  bool ctc_merge_repeated = true;
  bool ignore_longer_outputs_than_inputs = false;
  static constexpr auto fields() {
    using A = CtcAttrs;
    return field_list(field("preprocess_collapse_repeated", &A::preprocess_collapse_repeated),
                      field("ctc_merge_repeated", &A::ctc_merge_repeated),
                      field("ignore_longer_outputs_than_inputs", &A::ignore_longer_outputs_than_inputs));
  }
};
struct GreedyAttrs {
  bool merge_repeated = false;
  int64_t blank_index = -1;
  static constexpr auto fields() {
    return field_list(field("merge_repeated", &GreedyAttrs::merge_repeated),
                      field("blank_index", &GreedyAttrs::blank_index));
  }
};

constexpr double kNever = -std::numeric_limits<double>::infinity();

// log(exp(a) + exp(b))
double log_sum(double a, double b) {
  if (a == kNever) return b;
  if (b == kNever) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// One sequence: `times` rows of logits, `step` numbers apart, and its labels.
template <class T>
struct CtcSequence {
  const T* logits;
  int64_t times, step, classes;
  std::vector<int64_t> labels;
  bool merge;

  // Labels with a blank before, between and after them.
  int64_t path_size() const { return 2 * static_cast<int64_t>(labels.size()) + 1; }
  int64_t path(int64_t u) const { return u % 2 == 0 ? classes - 1 : labels[static_cast<size_t>(u / 2)]; }
  bool is_blank(int64_t u) const { return u % 2 == 0; }
  // May a path go from place u - 2 to u, leaving out the blank between?
  bool may_skip(int64_t u) const { return u >= 2 && !is_blank(u) && !(merge && path(u) == path(u - 2)); }
  bool may_stay(int64_t u) const { return merge || is_blank(u); }

  std::vector<double> log_probabilities() const {
    std::vector<double> p(static_cast<size_t>(times * classes));
    for (int64_t t = 0; t < times; ++t) {
      const T* row = logits + t * step;
      double most = kNever, sum = 0;
      for (int64_t k = 0; k < classes; ++k) most = std::max(most, static_cast<double>(row[k]));
      for (int64_t k = 0; k < classes; ++k) sum += std::exp(static_cast<double>(row[k]) - most);
      for (int64_t k = 0; k < classes; ++k) {
        p[static_cast<size_t>(t * classes + k)] = static_cast<double>(row[k]) - most - std::log(sum);
      }
    }
    return p;
  }

  // The loss, and its derivative by the logits, which lies as they do.
  double solve(T* gradient) const {
    const int64_t n = path_size();
    const std::vector<double> p = log_probabilities();
    const auto chance = [&](int64_t t, int64_t u) { return p[static_cast<size_t>(t * classes + path(u))]; };
    const auto at = [&](int64_t t, int64_t u) { return static_cast<size_t>(t * n + u); };
    // What paths from the start to a place have, that place included; and what paths from there to the end have.
    std::vector<double> before(static_cast<size_t>(times * n), kNever), after(static_cast<size_t>(times * n), kNever);
    before[at(0, 0)] = chance(0, 0);
    if (n > 1) before[at(0, 1)] = chance(0, 1);
    for (int64_t t = 1; t < times; ++t) {
      for (int64_t u = 0; u < n; ++u) {
        double sum = may_stay(u) ? before[at(t - 1, u)] : kNever;
        if (u >= 1) sum = log_sum(sum, before[at(t - 1, u - 1)]);
        if (may_skip(u)) sum = log_sum(sum, before[at(t - 1, u - 2)]);
        before[at(t, u)] = sum + chance(t, u);
      }
    }
    after[at(times - 1, n - 1)] = 0;
    if (n > 1) after[at(times - 1, n - 2)] = 0;
    for (int64_t t = times - 2; t >= 0; --t) {
      for (int64_t u = 0; u < n; ++u) {
        double sum = may_stay(u) ? after[at(t + 1, u)] + chance(t + 1, u) : kNever;
        if (u + 1 < n) sum = log_sum(sum, after[at(t + 1, u + 1)] + chance(t + 1, u + 1));
        if (u + 2 < n && may_skip(u + 2)) sum = log_sum(sum, after[at(t + 1, u + 2)] + chance(t + 1, u + 2));
        after[at(t, u)] = sum;
      }
    }
    double whole = kNever;
    for (int64_t u = 0; u < n; ++u) whole = log_sum(whole, before[at(0, u)] + after[at(0, u)]);
    std::vector<double> shares(static_cast<size_t>(classes));
    for (int64_t t = 0; t < times; ++t) {
      std::fill(shares.begin(), shares.end(), kNever);
      for (int64_t u = 0; u < n && whole != kNever; ++u) {
        double& share = shares[static_cast<size_t>(path(u))];
        share = log_sum(share, before[at(t, u)] + after[at(t, u)]);
      }
      for (int64_t k = 0; k < classes; ++k) {
        const double share = shares[static_cast<size_t>(k)];
        const double own = std::exp(p[static_cast<size_t>(t * classes + k)]);
        gradient[t * step + k] = static_cast<T>(share == kNever ? own : own - std::exp(share - whole));
      }
    }
    return -whole;
  }
};

// The labels of every sequence, checked: indices within [batch, ...] and in order. As many as are given, whatever is
// left out of them, must fit into the times of a sequence, as TensorFlow counts.
std::vector<std::vector<int64_t>> labels_of(KernelContext& c, int64_t batch, int64_t classes, const CtcAttrs& a) {
  const int64_t n = c.in(2).num_elements();
  const auto* at = c.in<int64_t>(1);
  std::vector<std::vector<int64_t>> given(static_cast<size_t>(batch)), labels(static_cast<size_t>(batch));
  for (int64_t i = 0; i < n; ++i, at += 2) {
    if (at[0] < 0 || at[0] >= batch || at[1] < 0) {
      throw invalid_argument("labels_indices[{}] = [{}, {}] is outside a batch of {}", i, at[0], at[1], batch);
    }
    if (i > 0 && !std::lexicographical_compare(at - 2, at, at, at + 2)) {
      throw invalid_argument("labels_indices[{}] = [{}, {}] is out of order", i, at[0], at[1]);
    }
    given[static_cast<size_t>(at[0])].push_back(c.in<int32_t>(2)[i]);
  }
  for (int64_t b = 0; b < batch; ++b) {
    const auto& from = given[static_cast<size_t>(b)];
    auto& to = labels[static_cast<size_t>(b)];
    if (from.empty()) throw invalid_argument("there are no labels in batch {}", b);
    const int64_t own = c.in<int32_t>(3)[b], needed = static_cast<int64_t>(from.size());
    if (needed > own && !a.ignore_longer_outputs_than_inputs) {
      throw invalid_argument(
          "{} labels do not fit into {} inputs in batch {}: ignore_longer_outputs_than_inputs leaves them out", needed,
          own, b);
    }
    bool ended = false;
    for (size_t i = 0; i < from.size(); ++i) {
      if (i > 0 && a.preprocess_collapse_repeated && from[i] == from[i - 1]) continue;
      if (from[i] < 0) throw invalid_argument("labels must not be negative, got {} in batch {}", from[i], b);
      if (from[i] >= classes - 1) {
        ended = true;  // the blank, and what is no class, end a sequence
      } else if (ended) {
        throw invalid_argument("label {} in batch {} follows one that ends the sequence", from[i], b);
      } else {
        to.push_back(from[i]);
      }
    }
    if (needed > own) to.assign(from.begin(), from.end());  // too long: solve_all() passes it over
  }
  return labels;
}

void check_times(const Tensor& lengths, int64_t times) {
  for (int64_t i = 0; i < lengths.num_elements(); ++i) {
    const int64_t n = lengths.data<int32_t>()[i];
    if (n < 0 || n > times) throw invalid_argument("sequence_length[{}] = {} is not in [0, {}]", i, n, times);
  }
}

template <class T>
void solve_all(KernelContext& c, const CtcAttrs& a) {
  const Shape& s = c.in(0).shape();
  const int64_t times = s[0], batch = s[1], classes = s[2];
  if (classes < 1) throw invalid_argument("there must be at least one class");
  check_times(c.in(3), times);
  std::vector<std::vector<int64_t>> labels = labels_of(c, batch, classes, a);
  T *loss = c.out<T>(0), *gradient = c.out<T>(1);
  std::fill_n(loss, batch, T(0));
  std::fill_n(gradient, s.num_elements(), T(0));
  parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      auto& own = labels[static_cast<size_t>(b)];
      const int64_t length = c.in<int32_t>(3)[b];
      if (length == 0 || static_cast<int64_t>(own.size()) > length) continue;
      const CtcSequence<T> sequence{c.in<T>(0) + b * classes, length, batch * classes, classes, std::move(own),
                                    a.ctc_merge_repeated};
      loss[b] = static_cast<T>(sequence.solve(gradient + b * classes));
    }
  });
}

template <class T>
void decode_greedily(KernelContext& c, const GreedyAttrs& a) {
  const Shape& s = c.in(0).shape();
  const int64_t times = s[0], batch = s[1], classes = s[2];
  check_times(c.in(1), times);
  const int64_t blank = a.blank_index < 0 ? a.blank_index + classes : a.blank_index;
  if (blank < 0 || blank >= classes) throw invalid_argument("blank_index {} is no class of {}", a.blank_index, classes);
  std::vector<int64_t> indices, values;
  int64_t longest = 0;
  T* score = c.out<T>(3);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t before = -1, count = 0;
    T sum = 0;
    for (int64_t t = 0; t < c.in<int32_t>(1)[b]; ++t) {
      const T* row = c.in<T>(0) + (t * batch + b) * classes;
      const int64_t best = std::max_element(row, row + classes) - row;
      sum += -row[best];
      if (best != blank && !(a.merge_repeated && best == before)) {
        indices.insert(indices.end(), {b, count++});
        values.push_back(best);
      }
      before = best;
    }
    longest = std::max(longest, count);
    score[b] = sum;
  }
  c.forward(0, Tensor::of<int64_t>(indices, Shape{static_cast<int64_t>(values.size()), 2}));
  c.forward(1, Tensor::of<int64_t>(values));
  c.forward(2, Tensor{batch, longest});
}

}  // namespace

void register_ctc(Registry& r) {
  const Tensor logits = Tensor::of<float>({-1.f, 0.5f, 1.f, 0.25f, 0.f, -0.5f, 1.5f, -1.f, 0.75f}, Shape{3, 1, 3});
  const auto places = [](std::initializer_list<int64_t> v) {
    return Tensor::of<int64_t>(std::vector<int64_t>(v), Shape{static_cast<int64_t>(v.size()) / 2, 2});
  };
  r.define<CtcAttrs>("CTCLoss")
      .type("T", Types<float, double>{}, DType::float32)
      .in("inputs", "T")
      .in("labels_indices", DType::int64)
      .in("labels_values", DType::int32)
      .in("sequence_length", DType::int32)
      .out("loss", "T")
      .out("gradient", "T")
      .shape([](InferContext& c) {
        c.require_rank(0, 3);
        c.require_rank(1, 2);
        c.require_rank(2, 1);
        c.require_rank(3, 1);
        const PartialShape &x = c.input(0), &at = c.input(1), &values = c.input(2), &lengths = c.input(3);
        if (at.has_rank() && at[1] >= 0 && at[1] != 2)
          throw invalid_argument("labels_indices must be [n, 2], got {}", at.str());
        if (at.has_rank() && values.has_rank() && at[0] >= 0 && values[0] >= 0 && at[0] != values[0]) {
          throw invalid_argument("{} labels_values for {} labels_indices", values[0], at[0]);
        }
        const int64_t batch = x.has_rank() ? x[1] : kUnknownDim;
        if (lengths.has_rank() && lengths[0] >= 0 && batch >= 0 && lengths[0] != batch) {
          throw invalid_argument("{} values of sequence_length for a batch of {}", lengths[0], batch);
        }
        c.output(0, PartialShape{batch});
        c.output(1, x);
      })
      .cpu([]<class T>(KernelContext& c, const CtcAttrs& a) { solve_all<T>(c, a); })
      .grad([](const GradCtx& g) {
        // The second output is the derivative already. It is not differentiated itself, as in TensorFlow.
        return Gradients{expand_dims(g.dy(0), -1) * stop_gradient(g.y(1)), {}, {}, {}};
      })
      .grad_reads({}, {1})
      .doc("Minus the logarithm of the probability of labels, given the logits of every time, and its derivative.")
      // The derivative is an output of its own: what the suite takes for derivatives of both is tested by itself.
      .sample({.in = {logits, places({0, 0}), Tensor{0}, Tensor{3}}, .fixed = {0}})
      .sample({.in = {logits, places({0, 0, 0, 1}), Tensor{0, 1}, Tensor{3}}, .fixed = {0}})
      .sample({.in = {logits, places({0, 0, 0, 1}), Tensor{0, 1}, Tensor{1}}, .error = "2 labels do not fit into 1"})
      .sample({.in = {logits, places({0, 0, 0, 1, 0, 2}), Tensor{0, 0, 1}, Tensor{2}},
               .error = "3 labels do not fit into 2"},
              {.preprocess_collapse_repeated = true})
      .sample({.in = {logits, places({1, 0}), Tensor{0}, Tensor{3}}, .error = "outside a batch of 1"})
      .sample({.in = {logits, places({0, 0}), Tensor{0}, Tensor{4}}, .error = "is not in [0, 3]"});

  r.define<GreedyAttrs>("CTCGreedyDecoder")
      .type("T", Types<float, double>{}, DType::float32)
      .in("inputs", "T")
      .in("sequence_length", DType::int32)
      .out("decoded_indices", DType::int64)
      .out("decoded_values", DType::int64)
      .out("decoded_shape", DType::int64)
      .out("log_probability", "T")
      .shape([](InferContext& c) {
        c.require_rank(0, 3);
        c.require_rank(1, 1);
        const int64_t batch = c.input(0).has_rank() ? c.input(0)[1] : kUnknownDim;
        if (c.input(1).has_rank() && c.input(1)[0] >= 0 && batch >= 0 && c.input(1)[0] != batch) {
          throw invalid_argument("{} values of sequence_length for a batch of {}", c.input(1)[0], batch);
        }
        c.output(0, PartialShape{kUnknownDim, 2});
        c.output(1, PartialShape{kUnknownDim});
        c.output(2, PartialShape{2});
        c.output(3, PartialShape{batch, 1});
      })
      .cpu([]<class T>(KernelContext& c, const GreedyAttrs& a) { decode_greedily<T>(c, a); })
      .not_differentiable()
      .doc("The most likely class of each time, without blanks; repetitions are dropped where asked.")
      .sample({.in = {logits, Tensor{3}},
               .out = {places({0, 0, 0, 1}), Tensor{int64_t{0}, int64_t{0}}, Tensor{int64_t{1}, int64_t{2}},
                       Tensor{{-2.75f}}}})
      .sample({.in = {logits, Tensor{3}},
               .out = {places({0, 0}), Tensor{int64_t{2}}, Tensor{int64_t{1}, int64_t{1}}, Tensor{{-2.75f}}}},
              {.merge_repeated = true, .blank_index = 0});
}

namespace nn {
namespace {

// The class `blank` moved behind the others, which keep their order.
Tensor blank_last(const Tensor& logits, int64_t blank, int64_t classes) {
  if (blank == classes - 1) return logits;
  return concat({logits(ellipsis, slice(0, blank)), logits(ellipsis, slice(blank + 1, none)),
                 logits(ellipsis, slice(blank, blank + 1))},
                2);
}

int64_t blank_of(const PartialShape& logits, const CtcOptions& o) {
  if (!logits.has_rank() || logits.rank() != 3 || logits[2] < 1) {
    throw invalid_argument("[CTCLoss] logits need rank 3 and a known number of classes, got shape {}", logits.str());
  }
  const int64_t blank = o.blank_index < 0 ? o.blank_index + logits[2] : o.blank_index;
  if (blank < 0 || blank >= logits[2]) {
    throw invalid_argument("[CTCLoss] blank_index {} is no class of {}", o.blank_index, logits[2]);
  }
  return blank;
}

bool all_positive(const Tensor& lengths) {
  const Tensor* known = lengths.known_value();
  if (!known) return false;
  const Dims all = int_values(*known);
  return std::all_of(all.begin(), all.end(), [](int64_t n) { return n > 0; });
}

}  // namespace

Tensor ctc_loss(const SparseTensor& labels, const Operand& logits, const Operand& logit_length, const CtcOptions& o) {
  return composed(logits.where(), [&]() -> Tensor {
    static const Op<CtcAttrs> op("CTCLoss");
    Tensor x = logits.value();
    const PartialShape s = x.partial_shape();
    const int64_t blank = blank_of(s, o);
    if (!o.logits_time_major) x = transpose(x, {1, 0, 2});
    Tensor values = cast(labels.values, DType::int32);
    if (blank != s[2] - 1) values = where(values < static_cast<int32_t>(blank), values, values - 1);
    return op.many({blank_last(x, blank, s[2]), labels.indices, values, cast(logit_length, DType::int32)})[0];
  });
}

Tensor ctc_loss(const Operand& labels, const Operand& logits, const Operand& label_length, const Operand& logit_length,
                const CtcOptions& o) {
  return composed(logits.where(), [&]() -> Tensor {
    Tensor all = labels.value();
    Tensor lengths = label_length.value();
    const Tensor x = logits.value(), times = logit_length.value();
    Tensor op_times = times;
    const auto loss_of = [&] {
      const Tensor at = where(sequence_mask(lengths, cast(shape(all)[1], lengths.dtype())));
      return ctc_loss(SparseTensor{at, gather_nd(all, at), shape(all, DType::int64)}, x, op_times, o);
    };
    if (all_positive(lengths)) return loss_of();
    // A row without labels has the blank at all times. The op, which refuses it, gets some label for it, and a time for
    // that label.
    const int64_t blank = blank_of(x.partial_shape(), o);
    const Tensor empty = equal(lengths, zeros_like(lengths));
    const Tensor column = cast(zeros_like(reshape(lengths, {-1, 1})), all.dtype());
    all = concat({all, column}, 1);
    all = where(expand_dims(empty, 1), blank == 0 ? ones_like(all) : zeros_like(all), all);
    lengths = maximum(lengths, ones_like(lengths));
    op_times = where(empty, maximum(times, ones_like(times)), times);
    const Tensor blanks = log_softmax(x)(ellipsis, static_cast<int>(blank));
    const Tensor steps = o.logits_time_major ? transpose(blanks, {1, 0}) : blanks;
    const Tensor counted = sequence_mask(times, cast(shape(steps)[1], times.dtype()));
    return where(empty, negative(reduce_sum(where(counted, steps, zeros_like(steps)), 1)), loss_of());
  });
}

CtcDecoded ctc_greedy_decoder(const Operand& inputs, const Operand& sequence_length, bool merge_repeated,
                              int64_t blank_index) {
  static const Op<GreedyAttrs> op("CTCGreedyDecoder");
  const auto parts = op.many({inputs, sequence_length}, {.merge_repeated = merge_repeated, .blank_index = blank_index});
  return {{parts[0], parts[1], parts[2]}, parts[3]};
}

}  // namespace nn
}  // namespace runnel
