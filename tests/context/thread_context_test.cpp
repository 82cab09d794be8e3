// How the parts of a thread's context compose: one test for each pair that meets.
#include "runnel/tensor/thread_context.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runnel/autodiff/record.h"
#include "runnel/compat/v1.h"
#include "runnel/function/traced_blocks.h"
#include "runnel/graph/cancellation.h"
#include "runnel/graph/tracer.h"
#include "runnel/keras/call_scope.h"
#include "runnel/keras/keras.h"
#include "runnel/op/random_context.h"
#include "runnel/op/unrecorded.h"
#include "runnel/runnel.h"
#include "runnel/tensor/output_destination.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

float slope(GradientTape& tape, const Tensor& y, const Tensor& x) {
  const Gradient g = tape.gradient(y, x);
  return g.defined() ? g.value().item<float>() : -1;
}

bool is_clean(const ThreadContext& c) {
  return !c.interceptor && !c.recorder && c.tape_level == 0 && !c.handle_log && !c.destination && !c.random &&
         !c.cancellation && !c.tracing && !c.graph && !c.layer_call && !c.masks && !c.call_site && !c.training &&
         !c.worker && !c.name_scope && !c.summary;
}

// Is the context as before after f has thrown?
void expect_restored(const std::function<void()>& f) {
  ASSERT_TRUE(is_clean(thread_context()));
  EXPECT_THROW(f(), Error);
  EXPECT_TRUE(is_clean(thread_context()));
}
[[noreturn]] void throws() { throw Error(Code::aborted, "on purpose"); }

struct Described : keras::Layer {
  std::function<Tensor(const Tensor&, bool)> body;
  explicit Described(std::function<Tensor(const Tensor&, bool)> f) : body(std::move(f)) {}
  std::string class_name() const override { return "Described"; }
  using Layer::call;
  Tensor call(const Tensor& x, const keras::CallArgs& args) override { return body(x, args.training.value_or(false)); }
};

// --- the guard ---

TEST(ContextScope, PutsBackWhatItChangedAndNothingElse) {
  RandomContext random(1);
  {
    const ContextScope<&ThreadContext::random, &ThreadContext::training> scope(&random, true);
    EXPECT_EQ(thread_context().random, &random);
    EXPECT_TRUE(thread_context().training);
    thread_context().tape_level = 7;
  }
  EXPECT_EQ(std::exchange(thread_context().tape_level, 0), 7u);
  EXPECT_TRUE(is_clean(thread_context()));
}

TEST(ContextScope, AWholeContextIsExchanged) {
  RandomContext random(1);
  const RandomScope scope(random);
  {
    const ContextScope<> guest(ThreadContext{});
    EXPECT_TRUE(is_clean(thread_context()));
  }
  EXPECT_EQ(thread_context().random, &random);
}

TEST(ContextScope, ExceptionsInsideOfEachScope) {
  const Tensor x(2.f);
  expect_restored([] {
    GradientTape tape;
    throws();
  });
  expect_restored([] {
    const Unrecorded unrecorded;
    GradientTape tape;
    throws();
  });
  expect_restored([] {
    const OutsideTrace outside;
    throws();
  });
  expect_restored([] {
    RandomContext random(1);
    const RandomScope scope(random);
    throws();
  });
  expect_restored([] {
    const CancellationToken token;
    const CancellationScope scope(token);
    throws();
  });
  expect_restored([] {
    const OutputDestination destination(zeros({2}));
    throws();
  });
  expect_restored([] {
    const compat::v1::Graph graph;
    const auto scope = graph.as_default();
    throws();
  });
  expect_restored([&] { Described([](const Tensor&, bool) -> Tensor { throws(); })(x, {.training = true}); });
  expect_restored([&] { function([](const Tensor&) -> Tensor { throws(); })(x); });
  expect_restored([&] {
    function([](const Tensor& a) {
      Tensor y = a;
      IF(a > 0) {
        y = y + 1;
        throws();
      }
      return y;
    })(x);
  });
  expect_restored(
      [&] { host_call([](const std::vector<Tensor>&) -> std::vector<Tensor> { throws(); }, {x}, {DType::float32}); });
  expect_restored([] {
    auto it = data::range(3).map([](const Tensor&) -> Tensor { throws(); }).make_iterator();
    it.next();
  });
}

// --- another thread ---

TEST(OtherThread, BeginsWithAnEmptyContext) {
  RandomContext random(1);
  const CancellationToken token;
  const RandomScope random_scope(random);
  const CancellationScope cancellation(token);
  const OutputDestination destination(zeros({2}));
  GradientTape tape;
  function([](const Tensor& x) {
    std::thread([] { EXPECT_TRUE(is_clean(thread_context())); }).join();
    return x;
  })(Tensor(1.f));
}

TEST(OtherThread, IsLentTheCancellationAndThatItIsWaitedFor) {
  RandomContext random(1);
  const CancellationToken token;
  const RandomScope random_scope(random);
  const CancellationScope cancellation(token);
  ThreadContext lent = thread_context().lent();
  EXPECT_EQ(lent.cancellation, &cancellation);
  EXPECT_TRUE(lent.worker);
  lent.cancellation = nullptr;
  lent.worker = false;
  EXPECT_TRUE(is_clean(lent));
}

TEST(OtherThread, BranchesOnThePoolAreCancelled) {
  auto f = function([](const Tensor& n) {
    const auto endless = [&] {
      return while_loop([](const Tensor& i) { return i >= 0; }, [](const Tensor& i) { return i * 1; }, n);
    };
    return endless() + endless();
  });
  const CancellationToken token;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    token.cancel();
  });
  const CancellationScope scope(token);
  expect_error([&] { f(Tensor(1)); }, Code::cancelled, "cancelled");
  other.join();
}

TEST(OtherThread, ThreadsOfAPipelineAreNobodysGuests) {
  const auto consumer = std::this_thread::get_id();
  const CancellationToken token;
  const CancellationScope scope(token);
  auto it = data::range(50)
                .map(
                    [&](const Tensor& x) {
                      if (std::this_thread::get_id() != consumer) {
                        EXPECT_EQ(thread_context().cancellation, nullptr);
                        EXPECT_NE(thread_context().random, nullptr);  // of the element
                      }
                      EXPECT_FALSE(thread_context().interceptor);
                      return x;
                    },
                    2)
                .make_iterator();
  while (it.next()) {
  }
}

// --- tapes ---

TEST(TapeAndTrace, TheTapeSeesTheCallNotTheOpsInside) {
  const Tensor x(3.f);
  GradientTape tape;
  tape.watch(x);
  int inside = -1;
  auto f = function([&](const Tensor& a) {
    inside = num_recording_tapes();
    return a * a;
  });
  const Tensor y = f(x);
  EXPECT_EQ(inside, 0);
  EXPECT_EQ(num_recording_tapes(), 1);
  EXPECT_EQ(slope(tape, y, x), 6);
}

TEST(TapeAndTrace, ATapeMadeInsideRecordsTheTrace) {
  const Tensor x(3.f);
  GradientTape outer;
  outer.watch(x);
  auto f = function([](const Tensor& a) {
    GradientTape inner;
    inner.watch(a);
    return inner.gradient(a * a * a, a).value();
  });
  const Tensor dy = f(x);
  EXPECT_EQ(dy.item<float>(), 27);
  EXPECT_EQ(slope(outer, dy, x), 18);
}

TEST(TapeAndTrace, ATapeThatOutlivesItsTraceRecordsNoMore) {
  std::unique_ptr<GradientTape> kept;
  function([&](const Tensor& a) {
    kept = std::make_unique<GradientTape>();
    return a * 2;
  })(Tensor(1.f));
  EXPECT_EQ(num_recording_tapes(), 0);
  EXPECT_EQ(current_recorder(), nullptr);
  kept.reset();
  EXPECT_TRUE(is_clean(thread_context()));
}

TEST(TapeAndTrace, ATapeThatEndsInsideATrace) {
  const Variable v(2.f);
  auto outer = std::make_unique<GradientTape>();
  function([&](const Tensor& a) {
    outer.reset();
    return a * 2;
  })(Tensor(1.f));
  const Tensor y = v * v;  // would be recorded by what is no more
  EXPECT_EQ(y.item<float>(), 4);
  EXPECT_EQ(current_recorder(), nullptr);
}

TEST(TapeAndTrace, AVariableMadeInATrace) {
  Variable v;
  GradientTape tape;
  auto f = function([&](const Tensor& a) {
    if (!v.defined()) v = Variable(Tensor(5.f) * 2);
    return a * v;
  });
  const Tensor y = f(Tensor(3.f));
  EXPECT_EQ(y.item<float>(), 30);
  EXPECT_EQ(tape.gradient(y, v).value().item<float>(), 3);
}

TEST(TapeAndRandom, ATapeMayOutliveAnotherScope) {
  const Tensor x(3.f);
  RandomContext random(1);
  std::unique_ptr<GradientTape> tape;
  {
    const RandomScope scope(random);
    tape = std::make_unique<GradientTape>();
    tape->watch(x);
  }
  EXPECT_EQ(slope(*tape, x * x, x), 6);
}

TEST(TapeAndHostCall, ATapeInsideRecordsThoughOneIsOutside) {
  const Tensor x(3.f);
  GradientTape outer;
  outer.watch(x);
  float inner_slope = 0;
  const Tensor y = host_call(
      [&](const std::vector<Tensor>& in) {
        GradientTape inner;
        inner.watch(in[0]);
        const Tensor square = in[0] * in[0];
        inner_slope = slope(inner, square, in[0]);
        return std::vector<Tensor>{square};
      },
      {x}, {DType::float32})[0];
  EXPECT_EQ(inner_slope, 6);
  EXPECT_EQ(slope(outer, y, x), -1);  // a callback has no derivative
}

TEST(TapeAndHostCall, InAFunctionUnderATape) {
  const Tensor x(3.f);
  float inner_slope = 0;
  auto f = function([&](const Tensor& a) {
    const Tensor seen = host_call(
        [&](const std::vector<Tensor>& in) {
          GradientTape inner;
          inner.watch(in[0]);
          inner_slope = slope(inner, in[0] * in[0], in[0]);
          return std::vector<Tensor>{in[0]};
        },
        {a}, {DType::float32}, {PartialShape{}})[0];
    return a * a + 0 * seen;
  });
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(slope(tape, f(x), x), 6);
  EXPECT_EQ(inner_slope, 6);
}

Tensor squared_with_slope(const Tensor& x, float stated) {
  return custom_gradient(
      [&](const std::vector<Tensor>& in) {
        return CustomGradient{in[0] * in[0], [stated, twice = in[0] * 2](const Tensor& dy) {
                                return Gradients{dy * stated + 0 * twice};
                              }};
      },
      {x});
}

TEST(TapeAndCustomGradient, EagerlyAndBySeveralTapes) {
  const Tensor x(3.f);
  GradientTape a;
  GradientTape b;
  a.watch(x);
  b.watch(x);
  const Tensor y = squared_with_slope(x, 100);
  EXPECT_EQ(y.item<float>(), 9);
  EXPECT_EQ(slope(a, y, x), 100);
  EXPECT_EQ(slope(b, y, x), 100);
}

TEST(TapeAndCustomGradient, TheTapeOutsideOfTheFunction) {
  const Tensor x(3.f);
  auto f = function([](const Tensor& a) { return squared_with_slope(a * 2, 100) + 1; });
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x);
  EXPECT_EQ(y.item<float>(), 37);
  EXPECT_EQ(slope(tape, y, x), 200);
}

TEST(TapeAndCustomGradient, TheTapeInsideOfTheFunction) {
  auto f = function([](const Tensor& a) {
    GradientTape tape;
    tape.watch(a);
    return tape.gradient(squared_with_slope(a, 100), a).value();
  });
  EXPECT_EQ(f(Tensor(3.f)).item<float>(), 100);
}

TEST(TapeAndCustomGradient, SecondDerivativesOfAFunction) {
  // d/dx of x^3 is stated as 5 x^2, whose derivative is 10 x.
  auto f = function([](const Tensor& a) {
    return custom_gradient(
        [](const std::vector<Tensor>& in) {
          return CustomGradient{in[0] * in[0] * in[0],
                                [x = in[0]](const Tensor& dy) { return Gradients{dy * 5 * x * x}; }};
        },
        {a});
  });
  const Tensor x(2.f);
  GradientTape outer;
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  const Tensor d = inner.gradient(f(x), x);
  EXPECT_EQ(d.item<float>(), 20);
  EXPECT_EQ(slope(outer, d, x), 20);
}

TEST(TapeAndCustomGradient, InABranchAndInALoop) {
  auto f = function([](const Tensor& a) {
    Tensor y = a;
    IF(a > 0) { y = squared_with_slope(y, 7); }
    Tensor i(0);
    WHILE(i < 2) {
      y = squared_with_slope(y, 2);
      i = i + 1;
    }
    return y;
  });
  const Tensor x(2.f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x);
  EXPECT_EQ(y.item<float>(), 256);
  EXPECT_EQ(slope(tape, y, x), 28);
}

TEST(TapeAndCustomGradient, TensorsOfFunctionalModelsAreRefused) {
  const Tensor x = keras::Input({2});
  expect_error([&] { squared_with_slope(x, 3); }, Code::unimplemented, "[custom_gradient]");
}

TEST(TapeAndDataset, StagesAreNotRecorded) {
  const Tensor x(3.f);
  GradientTape tape;
  tape.watch(x);
  int recording = -1;
  auto it = data::range(1)
                .map([&](const Tensor&) {
                  recording = num_recording_tapes();
                  return x * x;
                })
                .make_iterator();
  const Tensor y = *it.next();
  EXPECT_EQ(recording, 0);
  EXPECT_EQ(slope(tape, y, x), -1);
}

TEST(TapeAndDataset, ATapeOfAMapOnAWorker) {
  std::vector<float> slopes;
  auto it = data::range(4)
                .map(
                    [](const Tensor& i) {
                      const Tensor x = cast(i, DType::float32);
                      GradientTape tape;
                      tape.watch(x);
                      return tape.gradient(x * x, x).value();
                    },
                    2)
                .make_iterator();
  while (const auto each = it.next()) slopes.push_back(each->item<float>());
  EXPECT_THAT(slopes, ElementsAre(0, 2, 4, 6));
}

// --- traces ---

TEST(TraceAndDataset, AMapIteratedInsideATraceRunsAtOnce) {
  for (const int workers : {0, 2}) {
    float sum = 0;
    const Tensor x(1.f);
    GradientTape tape;
    tape.watch(x);
    auto inner = function([](const Tensor& i) { return i * 2; });
    auto f = function([&](const Tensor& a) {
      auto it = data::range(10).map(inner, workers).make_iterator();
      while (const auto each = it.next()) sum += static_cast<float>(each->item<int64_t>());
      return a * sum;
    });
    EXPECT_EQ(slope(tape, f(x), x), 90);
    EXPECT_EQ(sum, 90);
  }
}

// No lock is held over the code of a trace: a worker that the trace waits for may trace another function.
TEST(TraceAndDataset, AWorkerTracesWhileATraceWaitsForIt) {
  auto of_workers = function([](const Tensor& i) { return i * 2; });
  const auto consumer = std::this_thread::get_id();
  std::atomic<int> by_workers = 0;
  float sum = 0;
  auto f = function([&](const Tensor& a) {
    auto it = data::range(40)
                  .map(
                      [&](const Tensor& i) {
                        std::this_thread::sleep_for(std::chrono::milliseconds(1));
                        if (std::this_thread::get_id() == consumer) return i * 2;
                        ++by_workers;
                        return of_workers(i);
                      },
                      2)
                  .make_iterator();
    while (const auto each = it.next()) sum += static_cast<float>(each->item<int64_t>());
    return a * sum;
  });
  EXPECT_EQ(f(Tensor(1.f)).item<float>(), 1560);
  EXPECT_GT(by_workers, 0);
}

TEST(TraceAndRandom, TracingDrawsNothingRunningDraws) {
  RandomContext random(5);
  const RandomScope scope(random);
  auto f = function([](const Tensor& x) { return x + random::uniform({}, 0, 1); });
  f.get_concrete_function(Tensor(0.f));
  EXPECT_EQ(random.state().offset, 0u);
  const float traced = f(Tensor(0.f)).item<float>();
  EXPECT_GT(random.state().offset, 0u);
  RandomContext again(5);
  const RandomScope inner(again);
  EXPECT_EQ(random::uniform({}, 0, 1).item<float>(), traced);
}

TEST(TraceAndRandom, AVariableMadeInATraceDrawsFromTheScope) {
  RandomContext random(5);
  const RandomScope scope(random);
  Variable v;
  function([&](const Tensor& x) {
    if (!v.defined()) v = Variable(random::uniform({3}));
    return x + v;
  })(Tensor(0.f));
  random.reset(5);
  EXPECT_EQ(random::uniform({3}).to_vector<float>(), v.value().to_vector<float>());
}

TEST(TraceAndDestination, WhatIsMadeInATraceDoesNotTakeTheRoom) {
  const Tensor room = zeros({4});
  const OutputDestination destination(room);
  Variable v;
  auto f = function([&](const Tensor& x) {
    if (!v.defined()) v = Variable(ones({4}) * 3);
    return reduce_sum(x * v);
  });
  f.get_concrete_function(TensorSpec{{4}, DType::float32, ""});
  EXPECT_NE(v.value().raw(), room.raw());
  EXPECT_EQ((Tensor{1.f, 2.f, 3.f, 4.f} + 1).raw(), room.raw());  // still offered
}

TEST(TraceAndDestination, WeightsOfALayerInAMapDoNotTakeTheRoom) {
  const Tensor room = zeros({4});
  const OutputDestination destination(room);
  keras::Dense dense({.units = 2});
  dense.build_from_shapes(PartialShape{2, 2});
  EXPECT_NE(dense.weights()[0].value().raw(), room.raw());
}

TEST(TraceAndV1Graph, AFunctionIsTracedApartFromTheDefaultGraph) {
  namespace v1 = compat::v1;
  const v1::Graph graph;
  auto f = function([](const Tensor& x) { return x * 2 + 1; });
  {
    const auto scope = graph.as_default();
    EXPECT_FALSE(v1::executing_eagerly());
    const OutsideTrace outside;
    EXPECT_EQ(f(Tensor(2.f)).item<float>(), 5);
    EXPECT_TRUE(graph.operations().empty());
  }
  EXPECT_TRUE(v1::executing_eagerly());
}

TEST(TraceAndTrace, AFunctionThatRunsItselfOutsideOfItsTrace) {
  // Not a call of itself in the graph: it runs now, and is traced for that.
  int depth = 0;
  std::function<Tensor(const Tensor&, bool)> again;
  auto f = function([&](const Tensor& x, bool deep) {
    ++depth;
    if (!deep) return x * 2;
    auto it = data::range(1).map([&](const Tensor&) { return again(Tensor(4.f), false); }).make_iterator();
    return x + it.next()->item<float>();
  });
  again = [&](const Tensor& x, bool deep) { return f(x, deep); };
  EXPECT_EQ(f(Tensor(1.f), true).item<float>(), 9);
  EXPECT_EQ(depth, 2);
}

// --- layers ---

TEST(LayerAndFunction, TrainingIsPartOfTheSignature) {
  int traces = 0;
  Described inner([](const Tensor& x, bool training) { return training ? x * 10 : x; });
  auto f = function([&](const Tensor& x) {
    ++traces;
    return inner(x);
  });
  Described outer([&](const Tensor& x, bool) { return f(x); });
  const Tensor x(1.f);
  EXPECT_EQ(outer(x, {.training = true}).item<float>(), 10);
  EXPECT_EQ(outer(x, {.training = false}).item<float>(), 1);
  EXPECT_EQ(outer(x, {.training = true}).item<float>(), 10);
  EXPECT_EQ(f(x).item<float>(), 1);  // outside of layers nothing trains
  EXPECT_EQ(traces, 2);
  EXPECT_THAT(f.why_retraced(), ElementsAre("training: was true, now false"));
}

TEST(LayerAndFunction, TrainingWithAnInputSignature) {
  Described inner([](const Tensor& x, bool training) { return training ? x * 10 : x; });
  FunctionOptions options;
  options.input_signature = {TensorSpec{PartialShape{kUnknownDim}, DType::float32, ""}};
  auto f = function([&](const Tensor& x) { return inner(x); }, options);
  Described outer([&](const Tensor& x, bool) { return f(x); });
  const Tensor x{1.f, 2.f};
  EXPECT_THAT(outer(x, {.training = true}).to_vector<float>(), ElementsAre(10, 20));
  EXPECT_THAT(outer(x, {.training = false}).to_vector<float>(), ElementsAre(1, 2));
  EXPECT_EQ(f.num_traces(), 2);
}

TEST(LayerAndFunction, MasksLastAsLongAsTheOutermostScope) {
  const Tensor x(1.f);
  const Tensor mask(true);
  {
    const keras::MaskScope masks;
    keras::MaskScope::set_mask(x, mask);
    auto f = function([&](const Tensor& a) {
      EXPECT_FALSE(keras::MaskScope::mask_of(a).defined());  // an argument is another tensor
      keras::MaskScope::set_mask(a, a > 0);
      return a * 2;
    });
    f(x);
    EXPECT_TRUE(keras::MaskScope::mask_of(x).defined());
    std::thread([&] { EXPECT_FALSE(keras::MaskScope::mask_of(x).defined()); }).join();
  }
  EXPECT_FALSE(keras::MaskScope::mask_of(x).defined());
}

TEST(LayerAndTape, WeightsAreMadeOutsideOfTheTape) {
  keras::Dense dense({.units = 1, .kernel_initializer = "ones"});
  const Tensor x{{2.f}};
  GradientTape tape;
  const Tensor y = dense(x);
  EXPECT_THAT(tape.gradient(y, dense.weights()[0]).value().to_vector<float>(), ElementsAre(2));
}

// --- random numbers and cancellation in callbacks ---

TEST(HostCall, KeepsRandomNumbersAndCancellation) {
  RandomContext random(5);
  const CancellationToken token;
  const RandomScope random_scope(random);
  const CancellationScope cancellation(token);
  const ThreadContext* here = &thread_context();
  host_call(
      [&](const std::vector<Tensor>& in) {
        EXPECT_EQ(&thread_context(), here);
        EXPECT_EQ(thread_context().random, &random);
        EXPECT_EQ(thread_context().cancellation, &cancellation);
        return in;
      },
      {Tensor(1.f)}, {DType::float32});
}

}  // namespace
}  // namespace runnel
