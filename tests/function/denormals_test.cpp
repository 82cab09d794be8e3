// Kernels count denormals as 0, wherever they run, and leave the caller's setting alone.
#include <cfenv>
#include <limits>

#include "runnel/base/parallel.h"
#include "runnel/runnel.h"
#include "runnel/tensor/serialize.h"
#include "tests/support/expect_error.h"

#if defined(__SSE2__)
namespace runnel {
namespace {

constexpr float kDenormal = 1e-40f;

unsigned control() { return __builtin_ia32_stmxcsr() & 0xffc0u; }  // without the flags that arithmetic raises
float product(float x, float y) {
  const volatile float a = x, b = y;
  return a * b;
}
bool flushes() { return product(kDenormal, 1e20f) == 0.f; }

class Denormals : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(control(), before_);
    EXPECT_FALSE(flushes());
  }
  const unsigned before_ = control();
};

TEST_F(Denormals, OfInputsAndResultsAreZeroInEagerOps) {
  EXPECT_EQ((Tensor{kDenormal} * 1e20f).item<float>(), 0.f);
  EXPECT_EQ((Tensor{1e-20f} * 1e-20f).item<float>(), 0.f);
  EXPECT_EQ((constant(1e-300, float64) * constant(1e-20, float64)).item<double>(), 0.);
  const Tensor matrix = fill({2, 2}, 1e-20f);
  EXPECT_EQ(matmul(matrix, matrix)(0, 0).item<float>(), 0.f);
}

TEST_F(Denormals, AreZeroInFunctionsAndTheirGradients) {
  auto f = function([](Tensor x) { return reduce_sum(x * 1e-20f + x * 1e-21f); });
  const Tensor x = fill({100000}, 1e-20f);  // long enough for fused loops on several threads
  EXPECT_EQ(f(x).item<float>(), 0.f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  EXPECT_EQ(reduce_sum(tape.gradient(y, x) * 1e-20f).item<float>(), 0.f);
}

TEST_F(Denormals, AreZeroWithAnyNumberOfThreads) {
  const int threads = num_threads();
  const Tensor x = fill({1 << 20}, 1e-20f);
  for (const int n : {1, 3}) {
    set_num_threads(n);
    EXPECT_EQ(reduce_max(x * x).item<float>(), 0.f);
  }
  set_num_threads(threads);
}

TEST_F(Denormals, KernelsRoundToNearestWhateverTheCallerRoundsTo) {
  std::fesetround(FE_UPWARD);
  const unsigned own = control();
  const float sum = (Tensor{1.f} + 1e-10f).item<float>();
  EXPECT_EQ(control(), own);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(sum, 1.f);
}

TEST_F(Denormals, AnErrorLeavesTheCallersSettingToo) {
  EXPECT_THROW(matmul(ones({2, 3}), ones({2, 3})), Error);
  EXPECT_THROW(linalg::inv(zeros({2, 2})), Error);
  auto f = function([](Tensor x) { return gather(x, {7}); });
  EXPECT_THROW(f(Tensor{1.f}), Error);
  EXPECT_EQ(control(), before_);
}

// As in TensorFlow, a callback is a part of the kernel that calls it.
TEST_F(Denormals, AreZeroInHostCallsAndNotInCodeThatIsTraced) {
  bool inside = false, traced = true;
  auto f = function([&](Tensor x) {
    traced = flushes();
    return host_call(
        [&](const std::vector<Tensor>& in) {
          inside = flushes();
          return in;
        },
        {x}, {DType::float32})[0];
  });
  f(Tensor{1.f});
  EXPECT_TRUE(inside);
  EXPECT_FALSE(traced);
}

TEST_F(Denormals, AreKeptWhereNothingIsComputed) {
  const Tensor x{kDenormal, -kDenormal};
  const std::vector<float> values{kDenormal, -kDenormal};
  EXPECT_EQ(identity(x).to_vector<float>(), values);
  EXPECT_EQ(reshape(x, {2, 1}).to_vector<float>(), values);
  EXPECT_EQ(concat({x, x}, 0)(slice(0, 2)).to_vector<float>(), values);
  EXPECT_EQ(gather(x, {0, 1}).to_vector<float>(), values);
  EXPECT_EQ(transpose(reshape(x, {1, 2})).to_vector<float>(), values);
  EXPECT_EQ(parse_tensor_proto(serialize_tensor_proto(x)).to_vector<float>(), values);
  EXPECT_EQ(x[0].str(), "tf.Tensor(1e-40, shape=(), dtype=float32)");
  EXPECT_EQ(strings::to_number(Tensor{"1e-40"}).item<float>(), kDenormal);
  EXPECT_EQ(io::decode_csv(Tensor{"1e-40"}, {Tensor{0.f}})[0].item<float>(), kDenormal);
}

// The smallest halves are normal floats.
TEST_F(Denormals, OfHalvesAreNumbersLikeAnyOther) {
  const Tensor half = Tensor::of<Half>({Half::from_bits(1), Half::from_bits(0x3ff)});
  const std::vector<float> values{0x1p-24f, 1023 * 0x1p-24f};
  EXPECT_EQ(cast(half, float32).to_vector<float>(), values);
  EXPECT_EQ(cast(cast(Tensor::of(values), float16), float32).to_vector<float>(), values);
  EXPECT_EQ(cast(half + half, float32).to_vector<float>(), (std::vector<float>{0x1p-23f, 1023 * 0x1p-23f}));
}

}  // namespace
}  // namespace runnel
#endif
