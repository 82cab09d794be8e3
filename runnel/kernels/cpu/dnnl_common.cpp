#include "runnel/kernels/cpu/dnnl_common.h"

#include <algorithm>

#include "runnel/base/cpu.h"
#include "runnel/kernels/cpu/scratch.h"

// Of the OpenMP runtime that oneDNN uses; GCC's omp.h does not compile with clang.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int);
}

namespace runnel::cpu {

OneThread::OneThread() : saved_(omp_get_max_threads()) {
  if (saved_ != 1) omp_set_num_threads(1);
}

OneThread::~OneThread() {
  if (saved_ != 1) omp_set_num_threads(saved_);
}

bool dnnl_setup() {
  static const bool wide = [] {
    // Refused once oneDNN has been used by someone else in the process; then its own choice stands.
    if (!has_avx2()) {
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
    } else if (!has_avx512()) {
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
    } else if (!has_avx512_bf16()) {
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_vnni);
    }
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto core = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
    return (isa & core) == core;
  }();
  return wide;
}

bool dnnl_bf16() {
  static const bool native = [] {
    dnnl_setup();
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto bf16 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (isa & bf16) == bf16;
  }();
  return native;
}

// Never destroyed: worker threads may still hold streams and plans while the process exits.
const dnnl::engine& dnnl_engine() {
  dnnl_setup();
  static const auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

const dnnl::stream& dnnl_stream() {
  thread_local const dnnl::stream stream(dnnl_engine());
  return stream;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

void run_primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                   std::initializer_list<PrimitiveArg> args) {
  constexpr size_t kMaxArgs = 8;
  const dnnl::engine& engine = dnnl_engine();
  ScratchFrame frame;
  std::array<dnnl::memory, kMaxArgs> memories;
  std::array<dnnl_exec_arg_t, kMaxArgs> list;
  size_t n = 0;
  auto add = [&](int arg, const dnnl::memory::desc& desc, const void* data) {
    memories[n] = dnnl::memory(desc, engine, const_cast<void*>(data));
    list[n] = {arg, memories[n].get()};
    ++n;
  };
  for (const PrimitiveArg& a : args) add(a.arg, *a.desc, a.data);
  if (const size_t size = scratchpad.get_size(); size > 0) add(DNNL_ARG_SCRATCHPAD, scratchpad, frame.bytes(size));
  OneThread guard;
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive.get(), dnnl_stream().get(), static_cast<int>(n), list.data());
  if (status != dnnl_success) throw dnnl::error(status, "could not execute a primitive");
}

void run_reorder(const dnnl::reorder& reorder, const dnnl::memory::desc& scratchpad, const dnnl::memory::desc& from,
                 const void* src, const dnnl::memory::desc& to, void* dst) {
  run_primitive(reorder, scratchpad, {{DNNL_ARG_FROM, &from, src}, {DNNL_ARG_TO, &to, dst}});
}

PlanCache& plan_cache() {
  static auto& cache = *new PlanCache(512);
  return cache;
}

}  // namespace runnel::cpu
