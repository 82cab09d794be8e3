// IF, WHILE and for over tensors, eager and traced.
#include "runnel/function/traced_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/runnel.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define RUNNEL_LSAN
#endif
#endif

namespace runnel {
namespace {

using ::testing::HasSubstr;

template <class F, class... X>
void same(F f, const std::vector<std::tuple<X...>>& calls) {
  auto g = function(f);
  for (const auto& x : calls) {
    const Tensor eager = std::apply(f, x);
    const Tensor traced = std::apply(g, x);
    EXPECT_EQ(eager.str(), traced.str());
  }
  EXPECT_EQ(g.num_traces(), 1);
}

Tensor collatz(const Tensor& n, const Tensor& cap) {
  Tensor steps = 0.0;
  Tensor y = n;
  WHILE(steps < cap) {
    const Tensor tmp = y * 2.0;
    IF(y > 10.0) { y = y - 3.0; }
    else {
      y = tmp + 1.0;
    }
    steps = steps + 1.0;
  }
  IF(y > 5.0) { y = y * 100.0; }
  return y;
}

TEST(TracedBlocks, LoopsAndBranches) {
  std::vector<std::tuple<Tensor, Tensor>> calls;
  for (const double n : {1., 7., 11., 40.}) {
    for (const double c : {0., 1., 5., 9.}) calls.emplace_back(n, c);
  }
  same(collatz, calls);
}

TEST(TracedBlocks, ElseIfAndFirstDefinedInside) {
  same(
      [](const Tensor& x) {
        Tensor r;
        IF(x > 10) { r = x * 1; }
        else IF(x > 5) {
          r = x * 2;
        }
        else {
          r = x * 3;
        }
        return r;
      },
      std::vector<std::tuple<Tensor>>{{Tensor(1.f)}, {Tensor(7.f)}, {Tensor(11.f)}});
}

TEST(TracedBlocks, ForOverRangeAndTensors) {
  same(
      [](const Tensor& n) {
        Tensor acc = 0;
        for (auto i : range(n)) acc = acc + i * i;
        return acc;
      },
      std::vector<std::tuple<Tensor>>{{Tensor(0)}, {Tensor(1)}, {Tensor(10)}});
  same(
      [](const Tensor& x) {
        Tensor acc = zeros_like(x[0]);
        for (auto row : x) {
          IF(reduce_sum(row) > 4) { acc = acc + row; }
        }
        return acc;
      },
      std::vector<std::tuple<Tensor>>{{Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}}});
}

TEST(TracedBlocks, TensorArraysInLoops) {
  same(
      [](const Tensor& n) {
        TensorArray ta(DType::int32, n);
        for (auto i : range(n)) ta = ta.write(i, i * 10);
        return ta.stack();
      },
      std::vector<std::tuple<Tensor>>{{Tensor(1)}, {Tensor(4)}});
}

TEST(TracedBlocks, NestedLoops) {
  same(
      [](const Tensor& n) {
        Tensor total = 0;
        Tensor i = 0;
        WHILE(i < n) {
          Tensor j = 0;
          WHILE(j < i) {
            total = total + j;
            j = j + 1;
          }
          i = i + 1;
        }
        return total;
      },
      std::vector<std::tuple<Tensor>>{{Tensor(0)}, {Tensor(3)}, {Tensor(6)}});
}

TEST(TracedBlocks, VariablesInBlocks) {
  const Variable v(0.f);
  auto f = function([&](const Tensor& x) {
    IF(x > 0) { v.assign_add(x); }
    else {
      v.assign(-1.f);
    }
    return v.value();
  });
  EXPECT_EQ(f(Tensor(2.f)).item<float>(), 2);
  EXPECT_EQ(f(Tensor(3.f)).item<float>(), 5);
  EXPECT_EQ(f(Tensor(-3.f)).item<float>(), -1);
}

TEST(TracedBlocks, Gradients) {
  auto f = function([](const Tensor& x) {
    Tensor y = x;
    Tensor i = 0;
    WHILE(i < 3) {
      IF(y > 2) { y = y * x; }
      else {
        y = y + x;
      }
      i = i + 1;
    }
    return y;
  });
  GradientTape tape;
  const Tensor x(1.5f);  // 3, 4.5, 6.75: 2 x^3
  tape.watch(x);
  const Tensor y = f(x);
  EXPECT_FLOAT_EQ(y.item<float>(), 6.75);
  EXPECT_FLOAT_EQ(tape.gradient(y, x).value().item<float>(), 6 * 1.5 * 1.5);
}

TEST(TracedBlocks, LeavingABlockIsAnError) {
  const auto leaves = [](const Tensor& x) {
    IF(x > 0) { return x; }
    return x + 1;
  };
  EXPECT_EQ(leaves(Tensor(3.f)).item<float>(), 3);
  auto f = function(leaves);
#ifdef RUNNEL_LSAN
  // clang 16 does not destroy what a function returns where a destructor throws afterwards.
  const __lsan::ScopedDisabler leaks_are_the_compilers;
#endif
  try {
    f(Tensor(3.f));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("left by break"));
    EXPECT_THAT(e.what(), HasSubstr("traced_blocks_test.cpp:"));
  }
  auto g = function([](const Tensor& n) {
    Tensor s = 0;
    for (auto i : range(n)) {
      s = s + i;
      break;
    }
    return s;
  });
  EXPECT_THROW(g(Tensor(3)), Error);
  // The thread is as before.
  EXPECT_EQ((Tensor(1) + 1).item<int32_t>(), 2);
}

TEST(TracedBlocks, AHandleThatEscapesIsAnError) {
  auto f = function([](const Tensor& x) {
    std::vector<Tensor> all;
    IF(x > 0) { all.push_back(x * 2); }
    return all[0] + 1;
  });
  EXPECT_THROW(f(Tensor(1.f)), Error);
}

TEST(TracedBlocks, ABodyThatChangesIsAnError) {
  auto f = function([](const Tensor& n) {
    int passes = 0;
    Tensor s = 0;
    for (auto i : range(n)) {
      ++passes;
      for (int k = 0; k < passes; ++k) s = s + i;
    }
    return s;
  });
  EXPECT_THROW(f(Tensor(3)), Error);
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// Constants that C++ variables give, captured tensors that they choose, and conditions are compared as ops are.
TEST(TracedBlocks, ABodyWithOtherConstantsEachTimeIsAnError) {
  auto constants = function([](const Tensor& n) {
    Tensor x(0), i(0);
    int k = 1;
    WHILE(i < n) {
      x = x + k;
      k *= 2;
      i = i + 1;
    }
    return x;
  });
  const std::string text = error_of([&] { constants(Tensor(5)); });
  EXPECT_THAT(text, HasSubstr("[WHILE] the body gives another graph each time it is traced"));
  EXPECT_THAT(text, HasSubstr("traced_blocks_test.cpp:"));

  auto attributes = function([](const Tensor& x) {
    Tensor y = x;
    int axis = 0;
    for (auto i : range(reduce_sum(x))) y = concat({reduce_sum(stack({y, y}), axis++ % 2)}, 0) + i;
    return y;
  });
  EXPECT_THAT(error_of([&] { attributes(Tensor{1, 2}); }), HasSubstr("another graph each time"));

  auto captures = function([](const Tensor& x, const Tensor& n) {
    const std::vector<Tensor> choices{x, x * 2, x * 3, x * 4, x * 5};
    Tensor y = x;
    size_t k = 0;
    for (auto i : range(n)) y = y + choices[k++] + i;
    return y;
  });
  EXPECT_THAT(error_of([&] { captures(Tensor(1), Tensor(3)); }), HasSubstr("another graph each time"));

  auto conditions = function([](const Tensor& n) {
    Tensor i(0);
    int limit = 2;
    WHILE(i < n + limit) {
      i = i + 1;
      limit += 3;
    }
    return i;
  });
  EXPECT_THAT(error_of([&] { conditions(Tensor(5)); }), HasSubstr("the condition gives another graph each time"));
}

// What every trace makes anew is no difference: nested blocks, functions of the host, random numbers.
TEST(TracedBlocks, BodiesThatAreTheSameAreTakenAsSuch) {
  auto f = function([](const Tensor& n) {
    Tensor x(0.f), i(0);
    WHILE(i < n) {
      Tensor j(0);
      WHILE(j < i) {
        IF(x > 3.f) { x = x - random::uniform({}) * 0.f; }
        else {
          x = x + 1.f;
        }
        j = j + 1;
      }
      x = host_call([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + 1.f}; }, {x}, {float32},
                    {PartialShape{}})[0];
      i = i + 1;
    }
    return x;
  });
  EXPECT_EQ(f(Tensor(3)).item<float>(), 5);
}

TEST(TracedBlocks, AValueInOneArmOnlyIsAnErrorWhereItIsUsed) {
  auto returned = function([](const Tensor& x) {
    Tensor y;
    IF(x > 0) { y = x * 2; }
    return y;
  });
  const std::string text = error_of([&] { returned(Tensor(1.f)); });
  EXPECT_THAT(text, HasSubstr("the tensor gets a value in only one arm of the IF (at "));
  EXPECT_THAT(text, HasSubstr("traced_blocks_test.cpp:"));

  auto used = function([](const Tensor& x) {
    Tensor y;
    IF(x > 0) {}
    else {
      y = 5.f;
    }
    return y + 1.f;
  });
  EXPECT_THAT(error_of([&] { used(Tensor(1.f)); }), HasSubstr("[AddV2] the tensor gets a value in only one arm"));

  auto in_loop = function([](const Tensor& n) {
    Tensor y, i(0);
    WHILE(i < n) {
      y = i * 2;
      i = i + 1;
    }
    return y;
  });
  EXPECT_THAT(error_of([&] { in_loop(Tensor(1)); }), HasSubstr("first gets a value in the body of the WHILE (at "));

  // Not used afterwards, or given a value before it is: fine.
  auto unused = function([](const Tensor& x) {
    Tensor helper, y = x;
    IF(x > 0) {
      helper = x * 2;
      y = helper + 1;
    }
    IF(x > 1) { helper = x; }
    else {
      helper = -x;
    }
    return y + helper;
  });
  EXPECT_EQ(unused(Tensor(2.f)).item<float>(), 7);
}

// A member that is filled on first use.
struct FilledOnDemand {
  Tensor cache;
  Tensor operator()(const Tensor& x) {
    Tensor y = x;
    IF(x > 0.f) {
      if (!cache.defined()) cache = x * 10.f;
      y = y + cache;
    }
    return y;
  }
};

TEST(TracedBlocks, ACacheFilledInOneArmIsEmptyAfterTheTrace) {
  FilledOnDemand layer;
  Tensor copy;
  auto f = function([&](const Tensor& x) {
    const Tensor y = layer(x);
    copy = layer.cache;
    return y;
  });
  EXPECT_EQ(f(Tensor(2.f)).item<float>(), 22);
  EXPECT_FALSE(layer.cache.defined());
  EXPECT_FALSE(copy.defined());
  EXPECT_FALSE(layer.cache.is_symbolic());
  EXPECT_THAT(error_of([&] { layer.cache.dtype(); }), HasSubstr("refers to nothing"));
  EXPECT_THAT(error_of([&] { layer.cache + 1.f; }), HasSubstr("refers to nothing"));
  EXPECT_EQ(layer(Tensor(3.f)).item<float>(), 33);  // eager code fills it
  EXPECT_EQ(layer.cache.item<float>(), 30);
  EXPECT_EQ(f(Tensor(5.f)).item<float>(), 55);

  // Another signature, another trace; and in a trace it stays an error to use what one arm alone has filled.
  FilledOnDemand other;
  auto g = function([&](const Tensor& x) { return other(x); });
  EXPECT_EQ(g(Tensor(2.f)).item<float>(), 22);
  EXPECT_EQ(g(Tensor{2.f}).to_vector<float>()[0], 22);
  EXPECT_EQ(g.num_traces(), 2);
  auto twice = function([&](const Tensor& x) { return other(x) + other(x); });
  EXPECT_THAT(error_of([&] { twice(Tensor(2.f)); }), HasSubstr("gets a value in only one arm of the IF (at "));
  EXPECT_FALSE(other.cache.defined());
}

TEST(TracedBlocks, ACacheFilledInABlockIsAsBeforeAfterAnError) {
  FilledOnDemand layer;
  const auto fails = [](bool inside, Tensor& cache) {
    return function([inside, &cache](const Tensor& x) {
      IF(x > 0.f) {
        cache = x * 2.f;
        if (inside) throw Error(Code::aborted, "on purpose");
      }
      throw Error(Code::aborted, "on purpose");
      return x;
    });
  };
  for (const bool inside : {false, true}) {
    EXPECT_THROW(fails(inside, layer.cache)(Tensor(1.f)), Error);
    EXPECT_FALSE(layer.cache.defined());
  }
  layer.cache = 7.f;
  EXPECT_THROW(fails(true, layer.cache)(Tensor(1.f)), Error);
  EXPECT_EQ(layer.cache.item<float>(), 7);
}

TEST(TracedBlocks, ACacheFilledInALoopIsEmptyAfterTheTrace) {
  Tensor cache;
  auto f = function([&](const Tensor& n) {
    Tensor i(0);
    WHILE(i < n) {
      cache = i * 2;
      i = i + cache + 1;
    }
    return i;
  });
  EXPECT_EQ(f(Tensor(3)).item<int32_t>(), 4);
  EXPECT_FALSE(cache.defined());
  cache = 5;
  EXPECT_EQ(cache.item<int32_t>(), 5);
}

TEST(TracedBlocks, ValuesThatAreNotThereYetAreNamed) {
  auto plain_if = function(
      [](const Tensor& x) {
        const Tensor positive = x > 0;
        if (positive) return x;
        return -x;
      },
      {.name = "plain"});
  const std::string text = error_of([&] { plain_if(Tensor(1.f)); });
  EXPECT_THAT(text, HasSubstr("neither true nor false: use IF (...), WHILE (...) or cond() for it"));
  EXPECT_THAT(text, HasSubstr("it is what 'Greater' gives in graph 'plain_0' (at "));
  EXPECT_THAT(text, HasSubstr("traced_blocks_test.cpp:"));

  auto item = function([](const Tensor& x) { return x * x.item<float>(); }, {.name = "reads"});
  const std::string read = error_of([&] { item(Tensor(1.f)); });
  EXPECT_THAT(read, HasSubstr("its elements cannot be read here (at "));
  EXPECT_THAT(read, HasSubstr("traced_blocks_test.cpp:"));
  EXPECT_THAT(read, HasSubstr("of graph 'reads_0'"));
  EXPECT_THAT(error_of([&] { (void)Tensor{1.f, 2.f}.item<float>(); }), HasSubstr("traced_blocks_test.cpp:"));
  EXPECT_THAT(error_of([&] { Tensor(1.f).to_vector<int32_t>(); }), HasSubstr("traced_blocks_test.cpp:"));
}

TEST(TracedBlocks, CheckTracingFindsWhatTracingCannotSee) {
  int calls = 0;
  auto f = function([&](const Tensor& x) { return x + ++calls; });
  const Variable v(0.f);
  auto g = function([&](const Tensor& x) {
    v.assign_add(random::normal({}));
    return v * x;
  });
  check_tracing(true);
  g(Tensor(2.f));
  g(Tensor(3.f));
  EXPECT_THROW(f(Tensor(1)), Error);
  check_tracing(false);
}

TEST(TracedBlocks, ErrorsInsideABlockLeaveTheThreadUsable) {
  auto f = function([](const Tensor& x) {
    Tensor y = x;
    IF(reduce_sum(x) > 0) { y = matmul(x, x); }
    return y;
  });
  EXPECT_THROW(f(Tensor{1.f, 2.f}), Error);
  EXPECT_EQ((Tensor(1) + 1).item<int32_t>(), 2);
}

// A block's second pass puts handles back; the constants of a function called inside are none of them.
TEST(TracedBlocks, FunctionsWithConstantsInsideBlocks) {
  auto inner = function([](const Tensor& x) { return reshape(x * 3, {2, 1}) + Tensor{{1.f}, {2.f}}; });
  auto f = function([&](const Tensor& x, const Tensor& n) {
    Tensor y = x;
    Tensor i(0);
    WHILE(i < n) {
      IF(i > 0) { y = inner(y); }
      else {
        y = inner(y) * 2;
      }
      i = i + 1;
    }
    return y;
  });
  EXPECT_EQ(f(Tensor{{1.f}, {2.f}}, Tensor(2)).to_vector<float>(), (std::vector<float>{25, 50}));
}

}  // namespace
}  // namespace runnel
