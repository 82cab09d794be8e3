#pragma once

// Internal.

namespace runnel {

// While it lives, this thread computes as kernels do: numbers too small for a normal float or double count as 0, as
// inputs and as results, and results are rounded to nearest. Arithmetic on such numbers is a hundred times slower, and
// states and averages that fade away end among them; TensorFlow does so in all of its kernels.
//
// Moving, comparing as integers and printing bits are not arithmetic and leave them as they are. What the thread had
// set comes back at the end, exceptions included. One inside another costs a read of the register.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : before_(__builtin_ia32_stmxcsr()) {
    if (!is_set(before_)) __builtin_ia32_ldmxcsr((before_ & ~kControl) | kFlush);
  }
  ~FlushDenormals() {
    if (!is_set(before_)) __builtin_ia32_ldmxcsr(before_);
  }

 private:
  static constexpr unsigned kFlush = 0x8040;     // of results, and of inputs
  static constexpr unsigned kRounding = 0x6000;  // 0: to nearest
  static constexpr unsigned kControl = kFlush | kRounding;
  static bool is_set(unsigned control) { return (control & kControl) == kFlush; }

  const unsigned before_;
#else
  FlushDenormals() {}
#endif
 public:
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
};

}  // namespace runnel
