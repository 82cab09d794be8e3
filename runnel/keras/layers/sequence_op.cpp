#include "runnel/keras/layers/sequence_op.h"

#include "runnel/autodiff/tape.h"
#include "runnel/base/format.h"
#include "runnel/keras/register.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel::keras {
namespace {

struct SequenceAttrs {
  std::string cell;
  bool masked = false;
  bool time_major = false;
  bool go_backwards = false;
  bool return_sequences = false;
  static constexpr auto fields() {
    using A = SequenceAttrs;
    return field_list(field("cell", &A::cell, {.required = true, .texts = "LSTM|GRU|SimpleRNN"}),
                      field("masked", &A::masked), field("time_major", &A::time_major),
                      field("go_backwards", &A::go_backwards), field("return_sequences", &A::return_sequences));
  }
  CellKind kind() const { return cell == "LSTM" ? CellKind::lstm : cell == "GRU" ? CellKind::gru : CellKind::simple; }
  int64_t gates() const { return cpu::Recurrence{.cell = kind()}.gates(); }
};

// Inputs of both ops; those of the gradient go on with what the first kept and the gradients of its other outputs.
enum SequenceInput { kX, kH, kC, kKernel, kRecurrent, kBias, kMask, kKept, kDSequence, kDOutput, kDH, kDC };
enum SequenceOutput { kSequence, kOutput, kLastH, kLastC, kKeptOut };

// --- shapes ---

// One size that several inputs have in common.
class CommonSize {
 public:
  explicit CommonSize(const char* name) : name_(name) {}
  void is(int64_t size, const char* where) {
    if (size == kUnknownDim) return;
    if (value != kUnknownDim && value != size) {
      throw invalid_argument("{} {} by {}, {} by {}", value, name_, first_, size, where);
    }
    if (value == kUnknownDim) first_ = where;
    value = size;
  }
  void is(const PartialShape& shape, int axis, int64_t times, const char* where) {
    if (!shape.has_rank() || shape[axis] == kUnknownDim) return;
    if (shape[axis] % times != 0) throw invalid_argument("{} has {} columns for {} gates", where, shape[axis], times);
    is(shape[axis] / times, where);
  }
  int64_t value = kUnknownDim;

 private:
  const char* name_;
  const char* first_ = "";
};

struct SequenceSizes {
  CommonSize batch{"sequences"}, time{"steps"}, inputs{"features"}, units{"units"};
};

SequenceSizes sequence_sizes(const InferContext& c, const SequenceAttrs& a) {
  const bool gru = a.kind() == CellKind::gru, lstm = a.kind() == CellKind::lstm;
  const int axis = a.time_major ? 1 : 0;  // of the batch
  for (const auto& [i, rank] : {std::pair{kX, 3},
                                {kH, 2},
                                {kC, lstm ? 2 : 1},
                                {kKernel, 2},
                                {kRecurrent, 2},
                                {kBias, gru ? 2 : 1},
                                {kMask, a.masked ? 2 : 1}}) {
    c.require_rank(i, rank);
  }
  SequenceSizes s;
  s.batch.is(c.input(kX), axis, 1, "x"), s.time.is(c.input(kX), 1 - axis, 1, "x"), s.inputs.is(c.input(kX), 2, 1, "x");
  s.batch.is(c.input(kH), 0, 1, "h"), s.units.is(c.input(kH), 1, 1, "h");
  if (lstm) s.batch.is(c.input(kC), 0, 1, "c"), s.units.is(c.input(kC), 1, 1, "c");
  s.inputs.is(c.input(kKernel), 0, 1, "kernel"), s.units.is(c.input(kKernel), 1, a.gates(), "kernel");
  s.units.is(c.input(kRecurrent), 0, 1, "recurrent_kernel");
  s.units.is(c.input(kRecurrent), 1, a.gates(), "recurrent_kernel");
  s.units.is(c.input(kBias), gru ? 1 : 0, a.gates(), "bias");
  if (gru && c.input(kBias).has_rank() && c.input(kBias)[0] != kUnknownDim && c.input(kBias)[0] != 2) {
    throw invalid_argument("the bias of a GRU has two rows, got {}", c.input(kBias).str());
  }
  if (a.masked) s.batch.is(c.input(kMask), axis, 1, "mask"), s.time.is(c.input(kMask), 1 - axis, 1, "mask");
  return s;
}

PartialShape in_layout(const SequenceAttrs& a, const SequenceSizes& s, int64_t last) {
  return a.time_major ? PartialShape{s.time.value, s.batch.value, last}
                      : PartialShape{s.batch.value, s.time.value, last};
}

int64_t times_known(int64_t size, int64_t factor) { return size == kUnknownDim ? size : size * factor; }

void sequence_shape(InferContext& c, const SequenceAttrs& a) {
  const SequenceSizes s = sequence_sizes(c, a);
  const PartialShape state{s.batch.value, s.units.value};
  const cpu::Recurrence kind{.cell = a.kind()};
  c.output(kSequence, a.return_sequences ? in_layout(a, s, s.units.value) : PartialShape{0});
  c.output(kOutput, state);
  c.output(kLastH, state);
  c.output(kLastC, kind.states() == 2 ? state : PartialShape{0});
  const auto size = static_cast<int64_t>(dtype_size(c.dtype(kX)));
  c.output(kKeptOut, PartialShape{s.time.value, s.batch.value, times_known(s.units.value, kind.kept() * size)});
}

void sequence_gradient_shape(InferContext& c, const SequenceAttrs& a) {
  const SequenceSizes s = sequence_sizes(c, a);
  const PartialShape state{s.batch.value, s.units.value};
  const auto require = [&](int i, const PartialShape& shape, const char* name) {
    if (c.input(i).compatible_with(shape)) return;
    throw invalid_argument("{} has the shape {}, its output {}", name, c.input(i).str(), shape.str());
  };
  require(kDSequence, a.return_sequences ? in_layout(a, s, s.units.value) : PartialShape{0}, "d_sequence");
  require(kDOutput, state, "d_output");
  require(kDH, state, "d_h");
  require(kDC, a.kind() == CellKind::lstm ? state : PartialShape{0}, "d_c");
  c.output(0, in_layout(a, s, times_known(s.units.value, a.gates())));
  for (int i = kH; i <= kBias; ++i) c.output(i, c.input(i));
}

// --- kernels ---

cpu::Recurrence recurrence_of(const KernelContext& c, const SequenceAttrs& a) {
  const Shape& x = c.in(kX).shape();
  return {.cell = a.kind(),
          .batch = x[a.time_major ? 1 : 0],
          .time = x[a.time_major ? 0 : 1],
          .inputs = x[2],
          .units = c.in(kH).shape()[1],
          .time_major = a.time_major,
          .backwards = a.go_backwards};
}
template <class T>
cpu::RecurrentWeights<T> weights_of(const KernelContext& c) {
  return {c.in<T>(kKernel), c.in<T>(kRecurrent), c.in<T>(kBias)};
}

template <class T>
void run_sequence(KernelContext& c, const SequenceAttrs& a) {
  cpu::recurrent_forward<T>(recurrence_of(c, a), weights_of<T>(c),
                            {.x = c.in<T>(kX),
                             .h = c.in<T>(kH),
                             .c = c.in<T>(kC),
                             .mask = a.masked ? c.in<bool>(kMask) : nullptr,
                             .kept = reinterpret_cast<T*>(c.out<uint8_t>(kKeptOut)),
                             .sequence = a.return_sequences ? c.out<T>(kSequence) : nullptr,
                             .last = c.out<T>(kOutput),
                             .last_h = c.out<T>(kLastH),
                             .last_c = c.out<T>(kLastC)});
}

template <class T>
void run_sequence_gradient(KernelContext& c, const SequenceAttrs& a) {
  const cpu::Recurrence r = recurrence_of(c, a);
  Tensor kept = c.in(kKept);
  const Shape expected{r.time, r.batch, r.units * r.kept() * static_cast<int64_t>(sizeof(T))};
  if (kept.num_elements() > 0 && !(kept.shape() == expected)) {
    throw invalid_argument("kept has the shape {}, must have {} or no elements", kept.shape().str(), expected.str());
  }
  if (kept.num_elements() < expected.num_elements()) {  // not kept: made again
    kept = Tensor::empty(DType::uint8, expected);
    const Shape state{r.batch, r.units};
    const DType dtype = dtype_of<T>;
    Tensor last = Tensor::empty(dtype, state), h = Tensor::empty(dtype, state), cell = Tensor::empty(dtype, state);
    cpu::recurrent_forward<T>(r, weights_of<T>(c),
                              {.x = c.in<T>(kX),
                               .h = c.in<T>(kH),
                               .c = c.in<T>(kC),
                               .mask = a.masked ? c.in<bool>(kMask) : nullptr,
                               .kept = reinterpret_cast<T*>(kept.mutable_data<uint8_t>()),
                               .sequence = nullptr,
                               .last = last.mutable_data<T>(),
                               .last_h = h.mutable_data<T>(),
                               .last_c = cell.mutable_data<T>()});
  }
  const bool lstm = r.states() == 2;
  cpu::recurrent_backward<T>(r, weights_of<T>(c),
                             {.x = c.in<T>(kX),
                              .mask = a.masked ? c.in<bool>(kMask) : nullptr,
                              .kept = reinterpret_cast<const T*>(kept.data<uint8_t>()),
                              .d_sequence = a.return_sequences ? c.in<T>(kDSequence) : nullptr,
                              .d_last = c.in<T>(kDOutput),
                              .d_last_h = c.in<T>(kDH),
                              .d_last_c = lstm ? c.in<T>(kDC) : nullptr,
                              .dz = c.out<T>(0),
                              .dh = c.out<T>(kH),
                              .dc = lstm ? c.out<T>(kC) : nullptr,
                              .d_kernel = c.out<T>(kKernel),
                              .d_recurrent = c.out<T>(kRecurrent),
                              .d_bias = c.out<T>(kBias)});
}

// --- the same from other ops ---

// `projected` is told of x * kernel + bias. Steps are written out if `unroll` and their number is known.
std::vector<Tensor> decomposed_sequence(const std::vector<Tensor>& in, const SequenceAttrs& a, bool unroll = false,
                                        const std::function<void(const Tensor&)>& projected = nullptr) {
  const CellSequence cell = plain_sequence(a.kind(), in[kKernel], in[kRecurrent], in[kBias]);
  Tensor x = cell.project(ensure_shape(in[kX], PartialShape::unknown_dims(3)));
  if (projected) projected(x);
  Tensor mask = a.masked ? in[kMask] : Tensor();
  if (!a.time_major) {
    x = time_and_batch_swapped(x);
    if (a.masked) mask = transpose(mask, {1, 0});
  }
  if (a.go_backwards) {
    x = reverse(x, 0);
    if (a.masked) mask = reverse(mask, 0);
  }
  States states{in[kH]};
  if (a.kind() == CellKind::lstm) states.push_back(in[kC]);
  const SequenceResult r = run_steps(cell, x, mask, states, zeros_like(in[kH]), a.return_sequences, unroll);
  const Tensor none = zeros({0}, in[kX].dtype());
  Tensor sequence = a.return_sequences ? r.sequence : none;
  if (a.return_sequences && !a.time_major) sequence = time_and_batch_swapped(sequence);
  return {sequence, r.output, r.states[0], r.states.size() == 2 ? r.states[1] : none, zeros({0, 0, 0}, DType::uint8)};
}

// One tensor may be several inputs. A tape tells sources apart by their tensors: each input gets one of its own.
std::vector<Tensor> told_apart(const std::vector<Tensor>& in) {
  std::vector<Tensor> out;
  for (const Tensor& t : in) out.push_back(identity(t));
  return out;
}

std::vector<Tensor> decomposed_gradient(const std::vector<Tensor>& given, const SequenceAttrs& a, bool unroll = false) {
  const std::vector<Tensor> in = told_apart(given);
  GradientTape tape;
  std::vector<GradSource> sources{in[kH], in[kH], in[kC], in[kKernel], in[kRecurrent], in[kBias]};
  for (const GradSource& s : sources) tape.watch(s.key());
  std::vector<Tensor> out = decomposed_sequence(in, a, unroll, [&](const Tensor& projected) {
    tape.watch(projected);
    sources[0] = projected;
  });
  out.pop_back();
  const std::vector<Tensor> seeds(in.begin() + kDSequence, in.end());
  std::vector<Tensor> all;
  for (const Gradient& g : tape.gradient(out, sources, seeds, UnconnectedGradients::zero)) all.push_back(g.value());
  return all;
}

// --- derivatives ---

Gradients sequence_gradient(const GradCtx& g, const SequenceAttrs& a) {
  static const Op<SequenceAttrs> op("_RecurrentSequenceGrad");
  const std::vector<Tensor> d =
      op.many({g.x(kX), g.x(kH), g.x(kC), g.x(kKernel), g.x(kRecurrent), g.x(kBias), g.x(kMask), g.y(kKeptOut),
               g.dy(kSequence), g.dy(kOutput), g.dy(kLastH), g.dy(kLastC)},
              a);
  return {g.want(kX, [&] { return matmul(d[kX], g.x(kKernel), {.transpose_b = true}); }),
          d[kH],
          d[kC],
          d[kKernel],
          d[kRecurrent],
          d[kBias],
          {}};
}

Gradients second_sequence_gradient(const GradCtx& g, const SequenceAttrs& a) {
  const PartialShape& x = g.x(kX).partial_shape();
  if (!x.has_rank() || x[a.time_major ? 0 : 1] == kUnknownDim) {
    throw make_error(Code::unimplemented,
                     "[{}] second derivatives of recurrent layers need a known number of steps, got x of shape {}",
                     g.op().name, x.str());
  }
  std::vector<Tensor> given;
  for (int i = 0; i < g.num_inputs(); ++i) given.push_back(g.x(i));
  const std::vector<Tensor> in = told_apart(given);
  GradientTape tape;
  std::vector<GradSource> sources;
  for (size_t i = 0; i < in.size(); ++i) {
    if (i == kMask || i == kKept) continue;
    tape.watch(in[i]);
    sources.emplace_back(in[i]);
  }
  std::vector<Tensor> seeds;
  for (int i = 0; i < g.num_outputs(); ++i) seeds.push_back(g.dy(i));
  std::vector<Gradient> by = tape.gradient(decomposed_gradient(in, a, true), sources, seeds);
  by.insert(by.begin() + kMask, 2, Gradient());
  return by;
}

// Of all steps: so many products with the kernel and with the recurrent kernel, beside which the rest is little.
double step_flops(const KernelContext& c, int by_kernel, int by_recurrent) {
  const Shape& x = c.in(kX).shape();
  const int64_t width = x[x.rank() - 1], rows = width == 0 ? 0 : x.num_elements() / width;
  const int64_t products = by_kernel * c.in(kKernel).num_elements() + by_recurrent * c.in(kRecurrent).num_elements();
  return 2 * static_cast<double>(rows) * static_cast<double>(products);
}

// --- samples ---

Tensor sample_values(const Shape& shape, double first) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const double step = first + 0.37 * static_cast<double>(i);
    values.push_back(static_cast<float>(step - 2 * static_cast<double>(static_cast<int64_t>(step / 2)) - 0.9));
  }
  return Tensor::of<float>(values, shape);
}

std::vector<Tensor> sample_inputs(CellKind cell, bool masked, bool time_major) {
  const int64_t gates = cpu::Recurrence{.cell = cell}.gates();
  const Tensor none = Tensor::of<float>({});
  return {sample_values(time_major ? Shape{3, 2, 2} : Shape{2, 3, 2}, 0.1),
          sample_values({2, 2}, 0.2),
          cell == CellKind::lstm ? sample_values({2, 2}, 0.3) : none,
          sample_values({2, 2 * gates}, 0.4),
          sample_values({2, 2 * gates}, 0.5),
          sample_values(cell == CellKind::gru ? Shape{2, 6} : Shape{2 * gates}, 0.6),
          !masked      ? Tensor::of<bool>({})
          : time_major ? Tensor{{false, true}, {true, false}, {true, true}}
                       : Tensor{{false, true, true}, {true, false, true}}};
}

std::vector<Tensor> sample_gradient_inputs(CellKind cell, bool masked, bool time_major, bool sequences) {
  std::vector<Tensor> in = sample_inputs(cell, masked, time_major);
  const Tensor none = Tensor::of<float>({});
  in.push_back(Tensor::empty(DType::uint8, {0, 0, 0}));
  in.push_back(sequences ? sample_values(time_major ? Shape{3, 2, 2} : Shape{2, 3, 2}, 0.7) : none);
  in.push_back(sample_values({2, 2}, 0.8));
  in.push_back(sample_values({2, 2}, 0.9));
  in.push_back(cell == CellKind::lstm ? sample_values({2, 2}, 1.0) : none);
  return in;
}

}  // namespace

void register_sequences(Registry& r) {
  using A = SequenceAttrs;
  const A lstm{.cell = "LSTM", .return_sequences = true};
  const A gru{.cell = "GRU", .masked = true, .go_backwards = true, .return_sequences = true};
  const A simple{.cell = "SimpleRNN", .masked = true, .time_major = true};
  std::vector<Tensor> wrong = sample_inputs(CellKind::lstm, false, false);
  wrong[kRecurrent] = sample_values({3, 8}, 0);
  r.define<A>("_RecurrentSequence")
      .in("x", Types<float, double>{})
      .in("h")
      .in("c")
      .in("kernel")
      .in("recurrent_kernel")
      .in("bias")
      .in("mask", DType::bool_)
      .out("sequence")
      .out("output")
      .out("last_h")
      .out("last_c")
      .out("kept", DType::uint8)
      .shape([](InferContext& c, const A& a) { sequence_shape(c, a); })
      .cpu([]<class T>(KernelContext& c, const A& a) { run_sequence<T>(c, a); })
      .flops([](const KernelContext& c) { return step_flops(c, 1, 1); })
      .grad([](const GradCtx& g, const A& a) { return sequence_gradient(g, a); })
      .grad_reads({kX, kH, kC, kKernel, kRecurrent, kBias, kMask}, {kKeptOut})
      .decompose([](const std::vector<Tensor>& in, const A& a) { return decomposed_sequence(in, a); })
      .doc(
          "All steps of a recurrent layer with tanh and, for gates, sigmoid: the outputs (of every step where asked "
          "for, "
          "and the last), the states after them, and what the gradient needs. Steps that the mask leaves out keep the "
          "states and repeat the output.")
      .sample({.in = sample_inputs(CellKind::lstm, false, false)}, lstm)
      .sample({.in = sample_inputs(CellKind::lstm, true, true)}, {.cell = "LSTM", .masked = true, .time_major = true})
      .sample({.in = sample_inputs(CellKind::gru, true, false)}, gru)
      .sample({.in = sample_inputs(CellKind::gru, false, false)}, {.cell = "GRU"})
      .sample({.in = sample_inputs(CellKind::simple, true, true)}, simple)
      .sample({.in = wrong, .error = "2 units by h, 3 by recurrent_kernel"}, lstm);

  r.define<A>("_RecurrentSequenceGrad")
      .in("x", Types<float, double>{})
      .in("h")
      .in("c")
      .in("kernel")
      .in("recurrent_kernel")
      .in("bias")
      .in("mask", DType::bool_)
      .in("kept", DType::uint8)
      .in("d_sequence")
      .in("d_output")
      .in("d_h")
      .in("d_c")
      .out("d_projected")
      .out("d_first_h")
      .out("d_first_c")
      .out("d_kernel")
      .out("d_recurrent_kernel")
      .out("d_bias")
      .shape([](InferContext& c, const A& a) { sequence_gradient_shape(c, a); })
      .cpu([]<class T>(KernelContext& c, const A& a) { run_sequence_gradient<T>(c, a); })
      .flops([](const KernelContext& c) {
        const bool again = c.in(kKept).num_elements() == 0;
        return step_flops(c, 1, 2) + (again ? step_flops(c, 1, 1) : 0);
      })
      .grad([](const GradCtx& g, const A& a) { return second_sequence_gradient(g, a); })
      .decompose([](const std::vector<Tensor>& in, const A& a) { return decomposed_gradient(in, a); })
      .doc(
          "The gradient of _RecurrentSequence by the product of x and the kernel, the states, the weights and the "
          "bias. "
          "What was kept may be left out (no elements); it is then computed again.")
      .sample({.in = sample_gradient_inputs(CellKind::lstm, false, false, true)}, lstm)
      .sample({.in = sample_gradient_inputs(CellKind::gru, true, false, true)}, gru)
      .sample({.in = sample_gradient_inputs(CellKind::simple, true, true, false)}, simple);
}

SequenceResult run_whole(const WholeSequence& s) {
  static const Op<SequenceAttrs> op("_RecurrentSequence");
  const DType dtype = s.kernel.dtype();
  const bool widened = dtype != DType::float32 && dtype != DType::float64;
  const auto wide = [&](const Tensor& t) { return widened ? cast(t, DType::float32) : t; };
  const auto narrow = [&](const Tensor& t) { return widened ? cast(t, dtype) : t; };
  const bool lstm = s.cell == CellKind::lstm;
  const Tensor no_mask = Tensor::of<bool>({});
  const Tensor c = lstm ? wide(s.states[1]) : zeros({0}, widened ? DType::float32 : dtype);
  const std::vector<Tensor> out = op.many({wide(s.x), wide(s.states[0]), c, wide(s.kernel), wide(s.recurrent),
                                           wide(s.bias), s.mask.defined() ? s.mask : no_mask},
                                          {.cell = lstm                      ? "LSTM"
                                                   : s.cell == CellKind::gru ? "GRU"
                                                                             : "SimpleRNN",
                                           .masked = s.mask.defined(),
                                           .time_major = s.time_major,
                                           .go_backwards = s.go_backwards,
                                           .return_sequences = s.return_sequences});
  SequenceResult result{
      narrow(out[kOutput]), s.return_sequences ? narrow(out[kSequence]) : Tensor(), {narrow(out[kLastH])}};
  if (lstm) result.states.push_back(narrow(out[kLastC]));
  return result;
}

}  // namespace runnel::keras
