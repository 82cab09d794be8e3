#include "runnel/base/stack.h"

#include <gtest/gtest.h>
#include <ucontext.h>

#include <cstddef>
#include <thread>
#include <vector>

namespace runnel {
namespace {

// Goes down the stack until the answer is no, or `levels` deep.
[[gnu::noinline]] bool ends(int levels) {
  volatile char frame[16 * 1024];
  frame[0] = 1;
  if (!stack_has_room()) return true;
  return levels > 0 && ends(levels - 1) && frame[0] == 1;
}

TEST(Stack, HasRoomUntilItIsNearlyUsedUp) {
  EXPECT_TRUE(stack_has_room());
  bool ended = false;
  std::thread([&] { ended = ends(1 << 20); }).join();
  EXPECT_TRUE(ended);
}

// Stacks that no thread has: one in the data of the program, one on the heap.
ucontext_t outside, inside;
bool has_room = false;
void ask() { has_room = stack_has_room(); }
bool has_room_on(char* stack, size_t size) {
  has_room = false;
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = size;
  inside.uc_link = &outside;
  makecontext(&inside, ask, 0);
  swapcontext(&outside, &inside);
  return has_room;
}

TEST(Stack, OfAnotherOwnerHasRoom) {
  static char of_the_program[256 * 1024];
  std::vector<char> of_the_heap(256 * 1024);
  EXPECT_TRUE(has_room_on(of_the_program, sizeof of_the_program));
  EXPECT_TRUE(has_room_on(of_the_heap.data(), of_the_heap.size()));
  std::thread([&] {
    EXPECT_TRUE(has_room_on(of_the_program, sizeof of_the_program));
    EXPECT_TRUE(has_room_on(of_the_heap.data(), of_the_heap.size()));
  }).join();
}

}  // namespace
}  // namespace runnel
