#pragma once

// Internal to conv.cpp and conv_weights.cpp: how a convolution of float32 or bfloat16 is cut and which oneDNN
// primitives run the pieces. Gradients of the weights are summed in float32 also where the rest is bfloat16.
#include <memory>
#include <type_traits>
#include <vector>

#include "runnel/kernels/cpu/conv.h"
#include "runnel/kernels/cpu/dnnl_common.h"
#include "runnel/kernels/cpu/scratch.h"

namespace runnel::cpu {

enum class ConvKind { forward, backward_data, backward_weights };

// How activations (x, y) and weights lie for the primitive. nhwc: as the user's, weights as oneDNN likes them.
// any: activations too are reordered to what oneDNN likes. plain: everything as the user's (GEMM based).
// outer: as the user's, and conv_outer.h in place of a primitive.
enum class ConvLayout { nhwc, any, plain, outer };

// A description that oneDNN chose, and the reorder between it and the user's.
struct Reordered {
  dnnl::memory::desc user, inner;
  bool same = true;
  dnnl::reorder forth, back;  // user -> inner, inner -> user
  dnnl::memory::desc forth_scratch, back_scratch;
};

// One primitive for pieces of one geometry.
struct ConvPart {
  ConvShape shape;
  dnnl::primitive primitive;
  dnnl::memory::desc scratchpad;
  Reordered x, y;
  Reordered w;
  bool lanes16 = false;  // w.inner is [out / 16][in / 16][kernel...][16 in][16 out] without gaps
};

// One piece of the batch (or of the rows of one image): offsets in elements.
struct ConvPiece {
  int part;
  int64_t x_offset, y_offset;
};

struct ConvPlan : Plan {
  bool usable = false;  // false: oneDNN has no fast implementation, use the plain kernels
  std::vector<ConvPart> parts;
  std::vector<ConvPiece> pieces;
};

std::shared_ptr<const ConvPlan> conv_plan(ConvKind kind, const ConvShape& shape, ConvLayout layout, bool flipped,
                                          dnnl::memory::data_type type);

template <class T>
inline constexpr auto conv_type =
    std::is_same_v<T, BFloat16> ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;

// A window of one element that moves by one: a matrix product.
bool conv_is_matmul(const ConvShape& shape);

// The user's values as the primitive wants them: reordered into scratch memory if that is another layout.
template <class T>
const T* laid_out(const Reordered& r, const T* user, ScratchFrame& frame) {
  if (r.same) return user;
  void* inner = frame.bytes(r.inner.get_size());
  run_reorder(r.forth, r.forth_scratch, r.user, user, r.inner, inner);
  return static_cast<const T*>(inner);
}

}  // namespace runnel::cpu
