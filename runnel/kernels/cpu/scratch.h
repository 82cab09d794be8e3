#pragma once

#include <cstddef>
#include <cstdint>

#include "runnel/base/export.h"

namespace runnel::cpu {

// Temporary memory of the calling thread, reused from call to call. A frame hands out 64-byte aligned blocks that
// live until the frame ends; frames nest like the calls that open them. Other threads may read and write a block
// while its frame is open, but only the owner opens frames and asks for blocks. The contents start undefined.
class RUNNEL_API ScratchFrame {
 public:
  ScratchFrame();
  ~ScratchFrame();
  ScratchFrame(const ScratchFrame&) = delete;
  ScratchFrame& operator=(const ScratchFrame&) = delete;

  void* bytes(size_t size);
  template <class T>
  T* get(int64_t count) {
    return static_cast<T*>(bytes(static_cast<size_t>(count) * sizeof(T)));
  }

 private:
  size_t block_;
  size_t used_;
};

}  // namespace runnel::cpu
