#include "runnel/kernels/cpu/random.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/vmath.h"
#include "runnel/tensor/half.h"

namespace runnel::cpu {
namespace {

constexpr int64_t kChunkBlocks = 4096;  // Philox blocks per parallel chunk
constexpr int64_t kBatchBlocks = 256;   // drawn at a time into a stack buffer

// Calls draw(words, first_element, count) for batches of blocks that cover n outputs, `per_block` outputs each.
template <class Draw>
void for_blocks(const Philox& gen, int64_t n, int64_t per_block, Draw draw) {
  const int64_t blocks = (n + per_block - 1) / per_block;
  parallel_for(blocks, kChunkBlocks, [&](int64_t begin, int64_t end) {
    Philox mine = gen;
    mine.skip(static_cast<uint64_t>(begin));
    uint32_t words[4 * kBatchBlocks];
    for (int64_t b = begin; b < end; b += kBatchBlocks) {
      const int64_t m = std::min(kBatchBlocks, end - b);
      philox_fill(mine, words, m);
      const int64_t first = b * per_block;
      draw(words, first, std::min(m * per_block, n - first));
    }
  });
}

template <class T>
void store(double value, T* out) {
  if constexpr (std::is_same_v<T, double>) {
    *out = value;
  } else {
    *out = T(static_cast<float>(value));
  }
}

template <class T>
T uniform_from(const uint32_t* words, int64_t i) {
  if constexpr (std::is_same_v<T, double>) {
    return uniform_double(words[2 * i], words[2 * i + 1]);
  } else if constexpr (std::is_same_v<T, float>) {
    return uniform_float(words[i]);
  } else if constexpr (std::is_same_v<T, Half>) {
    return Half(uniform_half(words[i]));
  } else {
    return BFloat16(uniform_bfloat16(words[i]));
  }
}

// `count` truncated normals: of each pair (the sine first) the members within two standard deviations are taken.
void truncated_normals(PhiloxWords& words, bool wide, int64_t count, double* out) {
  int64_t taken = 0;
  while (taken < count) {
    double pair[2];
    if (wide) {
      const uint32_t a = words(), b = words(), c = words(), d = words();
      const auto z = box_muller_double(a, b, c, d);
      std::copy(z.begin(), z.end(), pair);
    } else {
      const uint32_t a = words(), b = words();
      const auto z = box_muller(a, b);
      std::copy(z.begin(), z.end(), pair);
    }
    for (const double z : pair) {
      if (std::abs(z) < 2.0 && taken < count) out[taken++] = z;
    }
  }
}

// Doubles from one generator two at a time, the second first: what TensorFlow's gamma draws take from it.
template <class Draw>
class Pairs {
 public:
  explicit Pairs(Draw draw) : draw_(draw) {}
  double operator()(Philox& gen) {
    if (left_ == 0) {
      const Philox::Block w = gen();
      pair_ = draw_(w);
      left_ = 2;
    }
    return pair_[--left_];
  }

 private:
  Draw draw_;
  std::array<double, 2> pair_{};
  size_t left_ = 0;
};

// Marsaglia and Tsang (2000); for alpha < 1 a Gamma(alpha + 1) times u^(1/alpha). An alpha that is not positive gives
// NaN or 0.
double gamma_from(Philox gen, double alpha) {
  Pairs uniform([](const Philox::Block& w) {
    return std::array<double, 2>{uniform_double(w[0], w[1]), uniform_double(w[2], w[3])};
  });
  Pairs normal([](const Philox::Block& w) { return box_muller_double(w[0], w[1], w[2], w[3]); });
  if (alpha == 1) return -std::log1p(-uniform(gen));
  const bool boost = alpha < 1;
  const double d = alpha + (boost ? 2.0 / 3 : -1.0 / 3);
  const double c = 1.0 / 3 / std::sqrt(d);
  for (;;) {
    const double x = normal(gen);
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = uniform(gen);
    if (u >= 1 - 0.0331 * (x * x) * (x * x) && !(std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v)))) continue;
    const double result = d * v;
    return boost ? result * std::pow(uniform(gen), 1 / alpha) : result;
  }
}

}  // namespace

template <class T>
void fill_uniform(Philox gen, T* out, int64_t n) {
  for_blocks(gen, n, sizeof(T) == 8 ? 2 : 4, [out](const uint32_t* words, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out[first + i] = uniform_from<T>(words, i);
  });
}

template <class T>
void fill_normal(Philox gen, T* out, int64_t n) {
  if constexpr (std::is_same_v<T, double>) {
    for_blocks(gen, n, 2, [out](const uint32_t* w, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; i += 2, w += 4) {
        const auto z = box_muller_double(w[0], w[1], w[2], w[3]);
        out[first + i] = z[0];
        if (i + 1 < count) out[first + i + 1] = z[1];
      }
    });
  } else {
    for_blocks(gen, n, 4, [out](const uint32_t* w, int64_t first, int64_t count) {
      constexpr int64_t kPairs = 2 * kBatchBlocks;
      alignas(32) float radius[kPairs], sine[kPairs], cosine[kPairs];
      const int64_t pairs = (count + 1) / 2;
      for (int64_t i = 0; i < pairs; ++i) {
        radius[i] = std::max(1.0e-7f, uniform_float(w[2 * i]));
        sine[i] = static_cast<float>(kTwoPi * uniform_float(w[2 * i + 1]));
      }
      vlog(radius, radius, pairs);
      vcos(sine, cosine, pairs);
      vsin(sine, sine, pairs);
      for (int64_t i = 0; i < pairs; ++i) radius[i] = std::sqrt(-2.0f * radius[i]);
      for (int64_t i = 0; i < count; ++i) {
        out[first + i] = T((i % 2 == 0 ? sine : cosine)[i / 2] * radius[i / 2]);
      }
    });
  }
}

template <class T>
void fill_truncated_normal(Philox gen, T* out, int64_t n) {
  // Elements come in groups of one block's worth; a group that rejects draws on within its reserved range.
  const int64_t group = sizeof(T) == 8 ? 2 : 4;
  parallel_for((n + group - 1) / group, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      Philox mine = gen;
      mine.skip(static_cast<uint64_t>(g) * kBlocksPerRejection * static_cast<uint64_t>(group));
      PhiloxWords words(mine);
      double z[4];
      const int64_t first = g * group;
      truncated_normals(words, sizeof(T) == 8, group, z);
      for (int64_t i = 0; i < std::min(group, n - first); ++i) store(z[i], out + first + i);
    }
  });
}

template <class T>
void fill_uniform_int(Philox gen, T lo, T hi, T* out, int64_t n) {
  for_blocks(gen, n, sizeof(T) == 8 ? 2 : 4, [=](const uint32_t* words, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (sizeof(T) == 8) {
        out[first + i] = uniform_int64(words[2 * i], words[2 * i + 1], lo, hi);
      } else {
        out[first + i] = uniform_int32(words[i], lo, hi);
      }
    }
  });
}

template <class T>
void fill_gamma(Philox gen, const T* alpha, int64_t num_alpha, T* samples, int64_t num_samples) {
  parallel_for(num_samples * num_alpha, 512, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {  // all of one alpha come after each other in the stream, not in memory
      const int64_t which = i / num_samples;
      Philox mine = gen;
      mine.skip(static_cast<uint64_t>(i) * kBlocksPerGamma);
      store(gamma_from(mine, static_cast<double>(alpha[which])), samples + i % num_samples * num_alpha + which);
    }
  });
}

#define RUNNEL_FLOATS(T)                                       \
  template void fill_uniform<T>(Philox, T*, int64_t);          \
  template void fill_normal<T>(Philox, T*, int64_t);           \
  template void fill_truncated_normal<T>(Philox, T*, int64_t); \
  template void fill_gamma<T>(Philox, const T*, int64_t, T*, int64_t);
RUNNEL_FLOATS(Half)
RUNNEL_FLOATS(BFloat16)
RUNNEL_FLOATS(float)
RUNNEL_FLOATS(double)
#undef RUNNEL_FLOATS
template void fill_uniform_int<int32_t>(Philox, int32_t, int32_t, int32_t*, int64_t);
template void fill_uniform_int<int64_t>(Philox, int64_t, int64_t, int64_t*, int64_t);

}  // namespace runnel::cpu
