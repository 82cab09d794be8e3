#include "runnel/kernels/cpu/gemm_bf16.h"

#include <algorithm>
#include <cstring>

#include "runnel/base/parallel.h"
#include "runnel/kernels/cpu/convert.h"
#include "runnel/kernels/cpu/dnnl_common.h"
#include "runnel/kernels/cpu/gemm.h"
#include "runnel/kernels/cpu/scratch.h"

// Blocks of C, cut by shape alone, run oneDNN's matmul of bfloat16, one thread each. It takes any strides, rearranges
// pieces of A and B on its way and sums in float32; making one takes a quarter of a millisecond, so they are kept.

namespace runnel::cpu {
namespace {

using dnnl::memory;

// A stack of matrices: elements lie row, column and matrix apart; a stack that repeats one matrix has matrix 0.
struct Strides {
  int64_t matrix, row, column;
};

struct Bf16Block {
  int64_t batch, m, n, k;
  Strides a, b, c;
};

struct Bf16Plan : Plan {
  bool usable = false;
  dnnl::matmul primitive;
  memory::desc a, b, c, scratchpad;
};

memory::desc stack_desc(int64_t batch, int64_t rows, int64_t columns, const Strides& s) {
  const bool repeats = s.matrix == 0;
  return {{repeats ? 1 : batch, rows, columns},
          memory::data_type::bf16,
          memory::dims{repeats ? std::max(rows * s.row, columns * s.column) : s.matrix, s.row, s.column}};
}

std::shared_ptr<const Bf16Plan> make_bf16_plan(const Bf16Block& p) {
  auto plan = std::make_shared<Bf16Plan>();
  plan->a = stack_desc(p.batch, p.m, p.k, p.a);
  plan->b = stack_desc(p.batch, p.k, p.n, p.b);
  plan->c = stack_desc(p.batch, p.m, p.n, p.c);
  try {
    const OneThread guard;
    const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(plan->a, plan->b, plan->c), user_scratchpad(),
                                            dnnl_engine());
    if (std::strstr(desc.impl_info_str(), "ref")) return plan;
    plan->primitive = dnnl::matmul(desc);
    plan->scratchpad = desc.scratchpad_desc();
    plan->usable = true;
  } catch (const dnnl::error&) {
    plan->usable = false;
  }
  return plan;
}

std::shared_ptr<const Bf16Plan> bf16_plan(const Bf16Block& p) {
  PlanKey key;
  key.add(-1);  // no convolution begins so
  for (int64_t word : {p.batch, p.m, p.n, p.k}) key.add(word);
  for (const Strides* s : {&p.a, &p.b, &p.c}) {
    for (int64_t word : {s->matrix, s->row, s->column}) key.add(word);
  }
  return plan_cache().get<Bf16Plan>(key, [&] { return make_bf16_plan(p); });
}

// The rows x columns elements at `from`, side by side as float32.
const float* as_floats(const BFloat16* from, int64_t rows, int64_t columns, const Strides& s, ScratchFrame& frame) {
  auto* to = frame.get<float>(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[i * columns + j] = static_cast<float>(from[i * s.row + j * s.column]);
  }
  return to;
}

// Where oneDNN has nothing for a block.
void run_in_floats(const Bf16Block& p, const BFloat16* a, const BFloat16* b, BFloat16* c) {
  for (int64_t i = 0; i < p.batch; ++i) {
    ScratchFrame frame;
    const float* fa = as_floats(a + i * p.a.matrix, p.m, p.k, p.a, frame);
    const float* fb = as_floats(b + i * p.b.matrix, p.k, p.n, p.b, frame);
    auto* fc = frame.get<float>(p.m * p.n);
    gemm_f32(false, false, p.m, p.n, p.k, 1.0f, fa, p.k, fb, p.n, 0.0f, fc, p.n);
    for (int64_t r = 0; r < p.m; ++r) convert_block(fc + r * p.n, c + i * p.c.matrix + r * p.c.row, p.n);
  }
}

void run_bf16_block(const Bf16Block& p, const BFloat16* a, const BFloat16* b, BFloat16* c) {
  const auto plan = bf16_plan(p);
  if (!plan->usable) return run_in_floats(p, a, b, c);
  run_primitive(plan->primitive, plan->scratchpad,
                {{DNNL_ARG_SRC, &plan->a, a}, {DNNL_ARG_WEIGHTS, &plan->b, b}, {DNNL_ARG_DST, &plan->c, c}});
}

int64_t blocks_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Part i of `parts` parts of [0, n), cut at multiples of `step`.
struct Bf16Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
Bf16Range cut_part(int64_t n, int64_t step, int64_t parts, int64_t i) {
  const int64_t steps = blocks_of(n, step);
  return {steps * i / parts * step, std::min(n, steps * (i + 1) / parts * step)};
}

// How a batch of products is cut: a few tasks, each large enough to pay for handing over and rearranging, of blocks
// that fit the cache.
struct ProductCut {
  int64_t batch, down, across;
};
ProductCut cut_product(const Bf16Block& p) {
  const double flops = 2.0 * static_cast<double>(p.batch * p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const int64_t wanted = flops < 1.5e6 ? 1 : flops < 40e6 ? 2 : flops < 2e9 ? 4 : 8;
  ProductCut cut{std::min(p.batch, wanted), blocks_of(p.m, 512), blocks_of(p.n, 512)};
  while (cut.batch * cut.down * cut.across < wanted && std::max(p.m / cut.down, p.n / cut.across) > 32) {
    int64_t& longer = p.m / cut.down > p.n / cut.across ? cut.down : cut.across;
    longer *= 2;
  }
  return cut;
}

}  // namespace

bool multiplies_bf16() { return dnnl_bf16(); }

void gemm_batched_bf16(int64_t batch, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda,
                       int64_t stride_a, const BFloat16* b, int64_t ldb, int64_t stride_b, BFloat16* c, int64_t ldc,
                       int64_t stride_c) {
  if (batch <= 0 || m <= 0 || n <= 0) return;
  if (k <= 0) {
    for (int64_t i = 0; i < batch * m; ++i) std::fill_n(c + i / m * stride_c + i % m * ldc, n, BFloat16(0));
    return;
  }
  if (n == 1 && m > 1 && ldc == 1) {  // as a row: oneDNN's blocks of rows may be small, those of columns may not
    return gemm_batched_bf16(batch, !tb, !ta, 1, m, k, b, ldb, stride_b, a, lda, stride_a, c, m, stride_c);
  }
  if (batch == 1) stride_a = stride_b = stride_c = 0;
  const Strides sa{stride_a, ta ? 1 : lda, ta ? lda : 1}, sb{stride_b, tb ? 1 : ldb, tb ? ldb : 1},
      sc{stride_c, ldc, 1};
  const Bf16Block whole{batch, m, n, k, sa, sb, sc};
  const ProductCut parts = cut_product(whole);
  parallel_for(parts.batch * parts.down * parts.across, 1, [&](int64_t i, int64_t) {
    const Bf16Range columns = cut_part(n, 32, parts.across, i % parts.across);
    const Bf16Range rows = cut_part(m, 16, parts.down, i / parts.across % parts.down);
    const Bf16Range matrices = cut_part(batch, 1, parts.batch, i / parts.across / parts.down);
    if (columns.size() <= 0 || rows.size() <= 0) return;
    run_bf16_block({matrices.size(), rows.size(), columns.size(), k, sa, sb, sc},
                   a + matrices.begin * sa.matrix + rows.begin * sa.row,
                   b + matrices.begin * sb.matrix + columns.begin * sb.column,
                   c + matrices.begin * sc.matrix + rows.begin * sc.row + columns.begin);
  });
}

}  // namespace runnel::cpu
