#pragma once

// Internal to lane_loop.cpp: the few x86-64 instructions that a LaneLoop is made of.
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace runnel::cpu {

// Where an operand is: a vector register, eight floats of the array whose address is in a general register (at the
// index register rax), or eight copies of one float in the pool (rsi).
struct LaneOperand {
  enum Kind { vector, array, pool } kind;
  int number;  // of the register; of the entry of the pool

  bool in_register() const { return kind == vector; }
};

class LaneAssembler {
 public:
  // Registers that hold addresses of arrays; not rbp and r13, which cannot be a base alone. From kFirstSaved on they
  // belong to the caller.
  static constexpr int kBases[] = {1, 8, 9, 10, 11, 3, 12, 14, 15};
  static constexpr size_t kFirstSaved = 5;
  static constexpr int kVectorRegisters = 16;

  // void f(void* const* arrays (rdi), const float* pool (rsi), int64_t bytes (rdx)), bytes > 0 a multiple of 32
  void begin(size_t num_arrays) {
    num_arrays_ = num_arrays;
    for (size_t i = kFirstSaved; i < num_arrays; ++i) push_or_pop(0x50, kBases[i]);
    for (size_t i = 0; i < num_arrays; ++i) {  // mov base, [rdi + 8 i]
      const int r = kBases[i];
      put({rex_w(r), 0x8b, 0x40 | (r & 7) << 3 | 7, static_cast<int>(8 * i)});
    }
    put({0x31, 0xc0});  // xor eax, eax
    loop_ = code_.size();
  }
  void end() {
    put({0x48, 0x83, 0xc0, 32});  // add rax, 32
    put({0x48, 0x39, 0xd0});      // cmp rax, rdx
    put({0x0f, 0x8c});            // jl
    put32(static_cast<uint32_t>(loop_ - (code_.size() + 4)));
    put({0xc5, 0xf8, 0x77});  // vzeroupper
    for (size_t i = num_arrays_; i-- > kFirstSaved;) push_or_pop(0x58, kBases[i]);
    put({0xc3});
  }

  void load(int to, LaneOperand from) { vex(kMap0F, 0, to, 0, from, 0x10); }   // vmovups
  void store(LaneOperand to, int from) { vex(kMap0F, 0, from, 0, to, 0x11); }  // vmovups
  // opcode: 0x58 vaddps, 0x5c vsubps, 0x59 vmulps, 0x5e vdivps, 0x54 vandps, 0x56 vorps, 0x57 vxorps
  void of_two(int opcode, int to, int a, LaneOperand b) { vex(kMap0F, 0, to, a, b, opcode); }
  void compare(int to, int a, LaneOperand b, int predicate) {  // vcmpps
    vex(kMap0F, 0, to, a, b, 0xc2);
    put({predicate});
  }
  void blend(int to, int if_clear, LaneOperand if_set, int mask) {  // vblendvps
    vex(kMap0F3A, 1, to, if_clear, if_set, 0x4a);
    put({mask << 4});
  }

  const std::vector<uint8_t>& code() const { return code_; }

 private:
  static constexpr int kMap0F = 1, kMap0F3A = 3;

  static int rex_w(int reg) { return 0x48 | (reg >> 3) << 2; }
  void put(std::initializer_list<int> bytes) {
    for (const int b : bytes) code_.push_back(static_cast<uint8_t>(b));
  }
  void put32(uint32_t x) {
    for (int i = 0; i < 4; ++i) code_.push_back(static_cast<uint8_t>(x >> 8 * i));
  }
  void push_or_pop(int opcode, int reg) {
    if (reg >= 8) put({0x41});
    put({opcode | (reg & 7)});
  }

  // A VEX instruction on 256 bits: `reg` and `rm` as in the ModRM byte, `vvvv` the operand between them (0 if none, for
  // the field is stored inverted and must then be all ones).
  void vex(int map, int prefix, int reg, int vvvv, LaneOperand rm, int opcode) {
    const bool is_pool = rm.kind == LaneOperand::pool;
    const int base = is_pool ? 6 : rm.number;
    put({0xc4, (~reg >> 3 & 1) << 7 | 1 << 6 | (~base >> 3 & 1) << 5 | map, (~vvvv & 15) << 3 | 1 << 2 | prefix,
         opcode});
    const int middle = (reg & 7) << 3;
    if (rm.in_register()) {
      put({0xc0 | middle | (base & 7)});
    } else if (is_pool) {  // [rsi + disp32]
      put({0x80 | middle | 6});
      put32(static_cast<uint32_t>(32 * rm.number));
    } else {  // [base + rax]
      put({middle | 4, base & 7});
    }
  }

  std::vector<uint8_t> code_;
  size_t num_arrays_ = 0;
  size_t loop_ = 0;
};

}  // namespace runnel::cpu
