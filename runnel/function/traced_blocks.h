#pragma once

// Control flow that reads like C++, in eager code and in functions that are traced:
//
//   WHILE (steps < cap) {
//     IF (y > 10) { y = y - 3; } else { y = y * 2 + 1; }
//     steps = steps + 1;
//   }
//   for (auto i : range(n)) acc = acc + f(i);
//
// While a function is traced, both arms of an IF run once and a loop's body a few times, to be written down. What the
// block changes are the Tensor and TensorArray handles it assigns; plain C++ variables changed inside cannot be seen:
// after the block they are what those runs left (check_tracing finds such code). A block is not left by break,
// continue, return or goto. This header is included by those who want it: IF and WHILE are macros.
#include "runnel/function/traced_loop.h"

namespace runnel {

// `for (auto x : tensor)`: the elements along the first dimension; `for (auto i : range(n))`.
class RUNNEL_API TensorIterator : private traced_blocks::Loop {
 public:
  TensorIterator(Tensor over, SourceSite where);
  struct End {};
  bool operator!=(End);
  void operator++();
  Tensor operator*() const;

 private:
  Tensor over_;
  Tensor count_;
  Tensor at_;
};
inline TensorIterator begin(const Tensor& t, SourceSite where = SourceSite::current()) {
  return TensorIterator(t, where);
}
inline TensorIterator::End end(const Tensor&) { return {}; }

}  // namespace runnel

#define IF(...)                                                                                      \
  for (::runnel::traced_blocks::Branch runnel_branch([&] { return ::runnel::Tensor(__VA_ARGS__); }); \
       runnel_branch.next();)                                                                        \
    if (runnel_branch.taken())
#define WHILE(...) \
  for (::runnel::traced_blocks::Loop runnel_loop; runnel_loop.test([&] { return ::runnel::Tensor(__VA_ARGS__); });)
