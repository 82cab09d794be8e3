#pragma once

// Internal to kernels/cpu: what every user of oneDNN shares.
#include <oneapi/dnnl/dnnl.hpp>

#include <cstdint>

#include "runnel/base/export.h"
#include "runnel/kernels/cpu/plan_cache.h"

namespace runnel::cpu {

// oneDNN threads with OpenMP and fixes the number of threads of a primitive when it is created. We run its primitives
// from our own pool, one thread each: hold this guard around creation and execution. Restores the caller's count.
class RUNNEL_API OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int saved_;
};

// Applies RUNNEL_ISA to oneDNN, once; dnnl_engine() includes it. True where oneDNN uses AVX-512.
bool dnnl_setup();
// True where oneDNN multiplies bfloat16 with instructions for it.
bool dnnl_bf16();
const dnnl::engine& dnnl_engine();
// A stream of the calling thread.
const dnnl::stream& dnnl_stream();

// Runs a primitive created under OneThread on raw pointers, with its scratchpad from the thread's ScratchFrame.
struct PrimitiveArg {
  int arg;
  const dnnl::memory::desc* desc;
  const void* data;
};
void run_primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                   std::initializer_list<PrimitiveArg> args);
// The same for a reorder between two plain or blocked descriptions.
void run_reorder(const dnnl::reorder& reorder, const dnnl::memory::desc& scratchpad, const dnnl::memory::desc& from,
                 const void* src, const dnnl::memory::desc& to, void* dst);

dnnl::primitive_attr user_scratchpad();

// Plans of primitives.
PlanCache& plan_cache();

}  // namespace runnel::cpu
