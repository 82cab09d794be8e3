// Traced functions: signatures, retracing, state, printing.
#include "runnel/function/function.h"
#include "runnel/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "runnel/runnel.h"

#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string captured_stdout(const std::function<void()>& f) {
  testing::internal::CaptureStdout();
  f();
  return testing::internal::GetCapturedStdout();
}

TEST(Function, TheHandbooksQuiz) {
  testing::internal::CaptureStderr();
  auto f = function([](const auto& x) {
    std::puts("The function is running in Python");
    print(x);
  });
  const std::string out = captured_stdout([&] {
    f(Tensor(1));
    f(Tensor(2));
    f(Tensor(2));
    f(Tensor(0.1f));
    f(Tensor(0.2f));
    f(1);
    f(2);
    f(1);
    f(0.1);
    f(0.2);
    f(0.1);
  });
  const std::string warning = testing::internal::GetCapturedStderr();
  const std::string t = "The function is running in Python\n";
  EXPECT_EQ(out, t + "1\n2\n2\n" + t + "0.1\n0.2\n" + t + "1\n" + t + "2\n1\n" + t + "0.1\n" + t + "0.2\n0.1\n");
  EXPECT_THAT(warning, HasSubstr("traced 6 times"));
}

TEST(Function, TheHandbooksCounter) {
  Variable a;
  auto f = function([&] {
    a.assign_add(1.0);
    return a.value();
  });
  a = Variable(0.0);
  std::string out;
  for (int i = 0; i < 3; ++i) out += f().str() + "\n";
  EXPECT_EQ(out,
            "tf.Tensor(1.0, shape=(), dtype=float32)\ntf.Tensor(2.0, shape=(), dtype=float32)\n"
            "tf.Tensor(3.0, shape=(), dtype=float32)\n");
}

TEST(Function, SignatureIsDtypeAndShape) {
  auto f = function([](const Tensor& x) { return x * 2; });
  EXPECT_EQ(f(Tensor{1.f, 2.f}).to_vector<float>(), (std::vector<float>{2, 4}));
  f(Tensor{3.f, 4.f});
  EXPECT_EQ(f.num_traces(), 1);
  f(Tensor{1.f, 2.f, 3.f});
  EXPECT_EQ(f.num_traces(), 2);
  f(Tensor{1, 2, 3});
  EXPECT_EQ(f.num_traces(), 3);
  f(Tensor{{1, 2, 3}});
  EXPECT_EQ(f.num_traces(), 4);
  EXPECT_THAT(f.why_retraced(),
              ElementsAre("argument 0: was float32[2], now float32[3]", "argument 0: was float32[3], now int32[3]",
                          "argument 0: was int32[3], now int32[1,3]"));
}

TEST(Function, NumbersAndTextsCountByValue) {
  auto f = function([](const Tensor& x, int n, const std::string& how) {
    Tensor y = x;
    for (int i = 0; i < n; ++i) y = how == "add" ? y + 1 : y * 2;
    return y;
  });
  EXPECT_EQ(f(Tensor(1.f), 3, std::string("add")).item<float>(), 4);
  EXPECT_EQ(f(Tensor(1.f), 3, "mul").item<float>(), 8);
  EXPECT_EQ(f(Tensor(5.f), 3, "mul").item<float>(), 40);
  EXPECT_EQ(f.num_traces(), 2);
  f(Tensor(1.f), 2, "mul");
  EXPECT_EQ(f.num_traces(), 3);
  EXPECT_EQ(f.why_retraced().back(), "argument 1: was 3, now 2");
}

TEST(Function, NestsGoInAndOut) {
  using Map = std::map<std::string, Tensor>;
  auto f = function([](const std::vector<Tensor>& xs, const Map& named, const std::pair<Tensor, double>& p) {
    return std::tuple{xs[0] + xs[1], Map{{"a", named.at("x") * p.second}, {"b", p.first}}, 7,
                      std::vector<Tensor>{xs[1]}};
  });
  for (int i = 0; i < 2; ++i) {
    const auto [sum, map, plain, list] = f(std::vector<Tensor>{Tensor(1.f), Tensor(2.f)}, Map{{"x", Tensor(3.f)}},
                                           std::pair<Tensor, double>{Tensor(4), 0.5});
    EXPECT_EQ(sum.item<float>(), 3);
    EXPECT_EQ(map.at("a").item<float>(), 1.5);
    EXPECT_EQ(map.at("b").item<int32_t>(), 4);
    EXPECT_EQ(plain, 7);
    EXPECT_EQ(list.at(0).item<float>(), 2);
  }
  EXPECT_EQ(f.num_traces(), 1);
  auto g = function([](const Nest& n) { return nest::map_structure([](const Tensor& t) { return t + 1; }, n); });
  const Nest out = g(Nest(std::tuple{Tensor(1), std::vector<Tensor>{Tensor(2), Tensor(3)}}));
  EXPECT_EQ(out[0].leaf().item<int32_t>(), 2);
  EXPECT_EQ(out[1][1].leaf().item<int32_t>(), 4);
  auto s = function([](const SparseTensor& t) { return SparseTensor{t.indices, t.values * 2, t.dense_shape}; });
  EXPECT_EQ(s(SparseTensor{Tensor::of<int64_t>({0, 1}, {1, 2}), Tensor{3.f}, Tensor::of<int64_t>({2, 2})})
                .values.item<float>(),
            6);
}

TEST(Function, VariablesCountByIdentity) {
  auto f = function([](const Variable& v, const Tensor& x) {
    v.assign_sub(x);
    return v * 1;
  });
  Variable a(10.f);
  Variable b(20.f);
  EXPECT_EQ(f(a, Tensor(1.f)).item<float>(), 9);
  EXPECT_EQ(f(b, Tensor(1.f)).item<float>(), 19);
  EXPECT_EQ(f(a, Tensor(1.f)).item<float>(), 8);
  EXPECT_EQ(f.num_traces(), 2);
}

TEST(Function, InputSignature) {
  auto f = function([](const Tensor& x) { return reduce_sum(x); },
                    {.input_signature = {{{kUnknownDim, 2}, DType::float32, "x"}}});
  EXPECT_EQ(f(Tensor{{1.f, 2.f}}).item<float>(), 3);
  EXPECT_EQ(f(Tensor{{1.f, 2.f}, {3.f, 4.f}}).item<float>(), 10);
  EXPECT_EQ(f.num_traces(), 1);
  EXPECT_THROW(f(Tensor{1.f, 2.f}), Error);
  EXPECT_THROW(f(Tensor{{1, 2}}), Error);
}

TEST(Function, ReduceRetracingGeneralisesADimension) {
  auto f = function([](const Tensor& x) { return x + 1; }, {.reduce_retracing = true});
  for (int n = 1; n < 8; ++n) EXPECT_EQ(f(ones({n, 3})).shape(), (Shape{n, 3}));
  EXPECT_EQ(f.num_traces(), 3);
  f(ones({4, 2}));
  EXPECT_EQ(f.num_traces(), 4);
}

TEST(Function, RetracingCanBeAnError) {
  auto f = function([](const Tensor& x) { return x + 1; }, {.name = "step", .retracing = Retracing::error});
  f(Tensor{1.f});
  f(Tensor{2.f});
  try {
    f(Tensor{1.f, 2.f});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("[step]"));
    EXPECT_THAT(e.what(), HasSubstr("was float32[1], now float32[2]"));
  }
}

TEST(Function, TheCacheIsBounded) {
  auto f = function([](const Tensor& x, int n) { return x + n; }, {.max_traces = 3});
  testing::internal::CaptureStderr();
  for (int i = 0; i < 10; ++i) f(Tensor(1), i);
  EXPECT_EQ(f.num_traces(), 10);
  f(Tensor(1), 9);
  EXPECT_EQ(f.num_traces(), 10);
  f(Tensor(1), 0);
  EXPECT_EQ(f.num_traces(), 11);
  testing::internal::GetCapturedStderr();
}

TEST(Function, ConcreteFunction) {
  const Variable w(Tensor{{1.f}, {2.f}}, {.name = "w"});
  auto f = function([&](const Tensor& x) { return matmul(x, w); }, {.name = "affine"});
  const ConcreteFunction c = f.get_concrete_function(TensorSpec{{kUnknownDim, 2}, DType::float32});
  EXPECT_EQ(c.inputs().at(0).shape, (PartialShape{kUnknownDim, 2}));
  EXPECT_EQ(c.outputs().at(0).shape, (PartialShape{kUnknownDim, 1}));
  ASSERT_EQ(c.captured_variables().size(), 1U);
  EXPECT_EQ(c.captured_variables()[0].name(), "w");
  EXPECT_GT(c.graph().num_nodes(), 2);
  EXPECT_EQ(c({Tensor{{3.f, 4.f}}})[0].item<float>(), 11);
  EXPECT_THROW(c({Tensor{3.f, 4.f}}), Error);
  EXPECT_THAT(c.to_text(), HasSubstr("MatMul"));
}

TEST(Function, RunEagerly) {
  int runs = 0;
  auto f = function([&](const Tensor& x) {
    ++runs;
    return x + 1;
  });
  f(Tensor(1));
  f(Tensor(1));
  EXPECT_EQ(runs, 1);
  run_functions_eagerly(true);
  EXPECT_EQ(f(Tensor(1)).item<int32_t>(), 2);
  EXPECT_EQ(f(Tensor(1)).item<int32_t>(), 2);
  run_functions_eagerly(false);
  EXPECT_EQ(runs, 3);
}

TEST(Function, VariablesAreCreatedOnce) {
  Variable v;
  auto good = function([&](const Tensor& x) {
    if (!v.defined()) v = Variable(random::normal({}) * 0 + 5);
    v.assign_add(x);
    return v.value();
  });
  EXPECT_EQ(good(Tensor(1.f)).item<float>(), 6);
  EXPECT_EQ(good(Tensor(1.f)).item<float>(), 7);
  auto bad = function([](const Tensor& x) {
    const Variable fresh(1.f);
    return x + cast(fresh, x.dtype());
  });
  // As in TensorFlow also on the first call: the function is traced twice there.
  for (int call = 0; call < 2; ++call) {
    test::expect_error([&] { bad(Tensor(1.f)); }, Code::invalid_argument,
                       "a function makes variables on its first call");
  }
  auto dependent = function([](const Tensor& x) { return Variable(x * 2).value(); });
  EXPECT_THROW(dependent(Tensor(1.f)), Error);
}

TEST(Function, FunctionsCallFunctions) {
  int traces = 0;
  auto inner = function([&](const Tensor& x) {
    ++traces;
    return x * x;
  });
  auto outer = function([&](const Tensor& x) { return inner(x) + inner(x + 1); });
  EXPECT_EQ(outer(Tensor(2.f)).item<float>(), 13);
  EXPECT_EQ(outer(Tensor(3.f)).item<float>(), 25);
  EXPECT_EQ(traces, 1);
}

TEST(Function, SideEffectsKeepProgramOrder) {
  Variable v(1.f);
  auto f = function([&](const Tensor& x) {
    print("a", v.value());
    v.assign(v * x);
    print("b", v.value());
    v.assign_add(1.f);
    const Tensor y = v.value();
    v.assign(0.f);
    return y;
  });
  EXPECT_EQ(captured_stdout([&] { EXPECT_EQ(f(Tensor(4.f)).item<float>(), 5); }), "a 1\nb 4\n");
  EXPECT_EQ(v.value().item<float>(), 0);
}

TEST(Function, AssertAndHostCall) {
  std::vector<float> seen;
  auto f = function([&](const Tensor& x) {
    assert_(reduce_all(x > 0), {x});
    const auto out = host_call(
        [&](const std::vector<Tensor>& in) {
          seen.push_back(in[0].to_vector<float>()[0]);
          return std::vector<Tensor>{in[0] * 10};
        },
        {x}, {DType::float32}, {x.partial_shape()});
    return out[0] + 1;
  });
  EXPECT_EQ(f(Tensor{1.f, 2.f}).to_vector<float>(), (std::vector<float>{11, 21}));
  f(Tensor{3.f, 4.f});
  EXPECT_EQ(seen, (std::vector<float>{1, 3}));
  try {
    f(Tensor{1.f, -2.f});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("assertion failed: [[1 -2]]"));
    EXPECT_THAT(e.what(), HasSubstr("node 'Assert'"));
    EXPECT_THAT(e.what(), HasSubstr("function_test.cpp:"));
  }
}

TEST(Function, EagerAndTracedDrawTheSameNumbers) {
  auto draw = [] { return std::pair{random::normal({3}), random::uniform({2})}; };
  random::set_seed(7);
  const auto a = draw();
  const auto b = draw();
  random::set_seed(7);
  auto f = function(draw);
  const auto c = f();
  const auto d = f();
  EXPECT_EQ(a.first.to_vector<float>(), c.first.to_vector<float>());
  EXPECT_EQ(b.second.to_vector<float>(), d.second.to_vector<float>());
}

TEST(Function, ThreadsShareOneFunction) {
  auto f = function([](const Tensor& x) { return reduce_sum(x * x) + 1; });
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 1; t <= 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) wrong += f(ones({t % 3 + 1})).item<float>() != static_cast<float>(t % 3 + 2);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(f.num_traces(), 3);
}

TEST(Function, AReturnedVariableIsItsValue) {
  const Variable a(0.0);
  auto g = function([&] {
    a.assign(a + 1.0);
    return a;
  });
  static_assert(std::is_same_v<decltype(g()), Tensor>);
  const Tensor first = g();
  EXPECT_EQ(g().item<float>(), 2);
  EXPECT_EQ(first.item<float>(), 1);
  auto many = function([&] {
    const std::vector<Variable> all{a, a};
    a.assign_add(1.0);
    return std::tuple{all, a, std::map<std::string, Variable>{{"a", a}}};
  });
  const auto [all, one, named] = many();
  a.assign(9.0);
  EXPECT_EQ(all[1].item<float>(), 3);
  EXPECT_EQ(one.item<float>(), 3);
  EXPECT_EQ(named.at("a").item<float>(), 3);
  run_functions_eagerly(true);
  EXPECT_EQ(g().item<float>(), 10);
  run_functions_eagerly(false);
}

TEST(Function, AnInputSignatureSpeaksForTensorsOnly) {
  int traces = 0;
  const auto f = function(
      [&](const Tensor& x, int k, const std::string& how) {
        ++traces;
        return how == "times" ? x * static_cast<float>(k) : x + static_cast<float>(k);
      },
      {.input_signature = {{{kUnknownDim}, DType::float32}}});
  EXPECT_EQ(f(Tensor{1.f, 2.f}, 2, "times").to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(f(Tensor{1.f, 2.f}, 3, "times").to_vector<float>(), (std::vector<float>{3, 6}));
  EXPECT_EQ(f(Tensor{1.f}, 3, "times").to_vector<float>(), (std::vector<float>{3}));
  EXPECT_EQ(f(Tensor{1.f}, 3, "plus").to_vector<float>(), (std::vector<float>{4}));
  EXPECT_EQ(traces, 3);
}

TEST(Function, WhatWasMovedFromSaysSo) {
  auto f = function([](const Tensor& n) { return n + 1; });
  const auto g = std::move(f);
  EXPECT_EQ(g(Tensor(1)).item<int32_t>(), 2);
  const std::string text = "this function was moved from";
  const auto refused = [&](const auto& use) { test::expect_error(use, Code::failed_precondition, text); };
  refused([&] { f(Tensor(1)); });  // NOLINT(bugprone-use-after-move): the point
  refused([&] { f.get_concrete_function(Tensor(1)); });
  refused([&] { f.name(); });
  refused([&] { f.num_traces(); });
  refused([&] { f.why_retraced(); });
  test::expect_error([&] { f(Tensor(1)); }, Code::failed_precondition, "function_test.cpp:");
  f = g;
  EXPECT_EQ(f(Tensor(2)).item<int32_t>(), 3);
}

TEST(Function, AConcreteFunctionThatWasMovedFromSaysSo) {
  ConcreteFunction a = function([](const Tensor& n) { return n + 1; }).get_concrete_function(Tensor(1));
  const ConcreteFunction b = std::move(a);
  EXPECT_EQ(b({Tensor(1)})[0].item<int32_t>(), 2);
  const auto refused = [](const auto& use) {
    test::expect_error(use, Code::failed_precondition, "this ConcreteFunction was moved from, or never made");
  };
  refused([&] { a({Tensor(1)}); });  // NOLINT(bugprone-use-after-move): the point
  refused([&] { a.name(); });
  refused([&] { a.graph(); });
  refused([&] { a.to_text(); });
  refused([&] { a.inputs(); });
  refused([&] { a.outputs(); });
  refused([&] { a.num_outputs(); });
  refused([&] { a.captured_inputs(); });
  refused([&] { a.captured_variables(); });
  refused([&] { a.trainable_variables(); });
  refused([] { ConcreteFunction().name(); });
}

}  // namespace
}  // namespace runnel
