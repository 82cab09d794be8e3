#pragma once

// Internal to conv.cpp: how a float32 convolution is cut and which oneDNN primitives run the pieces.
#include <memory>
#include <vector>

#include "runnel/kernels/cpu/conv.h"
#include "runnel/kernels/cpu/dnnl_common.h"

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

std::shared_ptr<const ConvPlan> conv_plan(ConvKind kind, const ConvShape& shape, ConvLayout layout, bool flipped);

}  // namespace runnel::cpu
