#include "runnel/kernels/cpu/lane_loop.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runnel/base/small_vector.h"
#include "runnel/kernels/cpu/isa.h"
#include "runnel/kernels/cpu/lane_assembler.h"

namespace runnel::cpu {
namespace {

constexpr int64_t kWidth = 8;  // floats of a vector
constexpr size_t kMostArrays = std::size(LaneAssembler::kBases);

int opcode_of(LaneStep::Kind kind) {
  switch (kind) {
    case LaneStep::add: return 0x58;
    case LaneStep::subtract: return 0x5c;
    case LaneStep::multiply: return 0x59;
    case LaneStep::divide: return 0x5e;
    case LaneStep::bit_and: return 0x54;
    case LaneStep::bit_or: return 0x56;
    default: return 0x57;  // bit_xor
  }
}

bool is_commutative(LaneStep::Kind kind) { return kind != LaneStep::subtract && kind != LaneStep::divide; }

// x86's numbers for what C++'s operators give, NaN included, without a trap.
int predicate_of(LaneStep::Predicate p) {
  constexpr int kPredicates[] = {0x00, 0x04, 0x11, 0x12, 0x1e, 0x1d};
  return kPredicates[p];
}

// Steps in their order, each result in a register from its step to its last use. Inputs and constants stay in memory,
// where instructions read them: each is in the first-level cache after its first use.
class LaneCompiler {
 public:
  LaneCompiler(const LaneCode& code, const std::vector<LaneOperand>& places, const std::vector<int>& results,
               size_t first_result)
      : steps_(code.steps()), places_(places), last_use_(steps_.size(), -1), stores_(steps_.size(), -1) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (is_in_memory(i)) continue;
      for (const int operand : {steps_[i].a, steps_[i].b, steps_[i].c}) {
        if (operand >= 0) last_use_[static_cast<size_t>(operand)] = static_cast<int>(i);
      }
    }
    for (size_t i = 0; i < results.size(); ++i) {
      int& base = stores_[static_cast<size_t>(results[i])];
      failed_ = failed_ || base >= 0;  // one step, two results
      base = LaneAssembler::kBases[first_result + i];
    }
    for (int r = LaneAssembler::kVectorRegisters; r-- > 0;) free_.push_back(r);
  }

  // The machine code; empty where there are too few registers.
  std::vector<uint8_t> run(size_t num_arrays) {
    out_.begin(num_arrays);
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!is_in_memory(i)) emit(i);
      if (stores_[i] >= 0) store(i);
      if (failed_) return {};
      if (places_[i].in_register() && last_use_[i] < 0) free_.push_back(places_[i].number);  // only stored
    }
    out_.end();
    return out_.code();
  }

 private:
  bool is_in_memory(size_t i) const {
    return steps_[i].kind == LaneStep::input || steps_[i].kind == LaneStep::constant;
  }
  LaneOperand place(int step) const { return places_[static_cast<size_t>(step)]; }

  int take() {
    if (free_.empty()) {
      failed_ = true;
      return 0;
    }
    const int r = free_.back();
    free_.pop_back();
    return r;
  }
  void release_operands(size_t i) {
    const LaneStep& s = steps_[i];
    for (const int operand : {s.a, s.b == s.a ? -1 : s.b, s.c}) {
      if (operand < 0 || !place(operand).in_register()) continue;
      if (last_use_[static_cast<size_t>(operand)] == static_cast<int>(i)) free_.push_back(place(operand).number);
    }
  }

  void emit(size_t i) {
    const LaneStep& s = steps_[i];
    // The first operand of an instruction is in a register: of a blend, what is taken where the mask is clear.
    int first = s.kind == LaneStep::select ? s.b : s.a, second = s.kind == LaneStep::select ? s.a : s.b;
    const bool swaps = s.kind != LaneStep::select && s.kind != LaneStep::compare && is_commutative(s.kind);
    if (swaps && !place(first).in_register() && place(second).in_register()) std::swap(first, second);
    int to = 0, a = 0;
    if (place(first).in_register()) {
      release_operands(i);
      to = take();
      a = place(first).number;
    } else {
      to = a = take();  // before the others are released: it must be none of them
      if (!failed_) out_.load(a, place(first));
      release_operands(i);
    }
    if (failed_) return;
    places_[i] = {LaneOperand::vector, to};
    if (s.kind == LaneStep::select) {
      out_.blend(to, a, place(second), place(s.c).number);
    } else if (s.kind == LaneStep::compare) {
      out_.compare(to, a, place(second), predicate_of(s.predicate));
    } else {
      out_.of_two(opcode_of(s.kind), to, a, place(second));
    }
  }

  void store(size_t i) {
    const LaneOperand to{LaneOperand::array, stores_[i]};
    if (failed_) return;
    if (places_[i].in_register()) return out_.store(to, places_[i].number);
    const int r = take();
    if (failed_) return;
    out_.load(r, places_[i]);
    out_.store(to, r);
    free_.push_back(r);
  }

  const std::vector<LaneStep>& steps_;
  std::vector<LaneOperand> places_;  // of inputs and constants; of other steps once they have one
  std::vector<int> last_use_;
  std::vector<int> stores_;  // the base register that a step is stored through, or -1
  std::vector<int> free_;
  LaneAssembler out_;
  bool failed_ = false;
};

}  // namespace

bool LaneLoop::available() {
#if defined(__x86_64__)
  return has_avx2();
#else
  return false;
#endif
}

std::unique_ptr<LaneLoop> LaneLoop::compile(const LaneCode& code, const std::vector<Input>& inputs,
                                            const std::vector<int>& results) {
  const auto num_arrays = static_cast<size_t>(std::count(inputs.begin(), inputs.end(), Input::array)) + results.size();
  if (!available() || num_arrays > kMostArrays) return nullptr;
  std::unique_ptr<LaneLoop> loop(new LaneLoop);
  loop->inputs_ = inputs;
  loop->num_results_ = results.size();
  for (const LaneStep& s : code.steps()) {
    if (s.kind == LaneStep::constant) loop->pool_.push_back(s.bits);
  }
  int arrays = 0, scalars = static_cast<int>(loop->pool_.size()), constants = 0;
  std::vector<LaneOperand> of_input;
  for (const Input kind : inputs) {
    of_input.push_back(kind == Input::array ? LaneOperand{LaneOperand::array, LaneAssembler::kBases[arrays++]}
                                            : LaneOperand{LaneOperand::pool, scalars++});
  }
  std::vector<LaneOperand> places;
  for (const LaneStep& s : code.steps()) {
    if (s.kind == LaneStep::input) {
      places.push_back(of_input[static_cast<size_t>(s.a)]);
    } else {
      places.push_back({LaneOperand::pool, s.kind == LaneStep::constant ? constants++ : 0});
    }
  }
  const std::vector<uint8_t> machine = LaneCompiler(code, places, results, static_cast<size_t>(arrays)).run(num_arrays);
  if (machine.empty()) return nullptr;
  // Never writable and executable at once.
  void* memory = mmap(nullptr, machine.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  loop->memory_ = memory;
  loop->memory_size_ = machine.size();
  std::memcpy(memory, machine.data(), machine.size());
  if (mprotect(memory, machine.size(), PROT_READ | PROT_EXEC) != 0) return nullptr;
  return loop;
}

LaneLoop::~LaneLoop() {
  if (memory_) munmap(memory_, memory_size_);
}

void LaneLoop::run(const float* const* inputs, float* const* results, int64_t n) const {
  SmallVector<float, 16 * kWidth> pool;
  const auto put = [&](float x) { pool.resize(pool.size() + kWidth, x); };
  for (const uint32_t bits : pool_) put(std::bit_cast<float>(bits));
  SmallVector<const float*, kMostArrays> from;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == Input::scalar) {
      put(*inputs[i]);
    } else {
      from.push_back(inputs[i]);
    }
  }
  const auto entry = reinterpret_cast<Entry>(memory_);
  void* arrays[kMostArrays];
  const auto call = [&](int64_t count) { entry(arrays, pool.data(), count * static_cast<int64_t>(sizeof(float))); };
  const int64_t whole = n / kWidth * kWidth, rest = n - whole;
  for (size_t i = 0; i < from.size(); ++i) arrays[i] = const_cast<float*>(from[i]);
  for (size_t i = 0; i < num_results_; ++i) arrays[from.size() + i] = results[i];
  if (whole > 0) call(whole);
  if (rest == 0) return;
  // What is less than a vector, in copies that are one.
  std::array<float, kWidth> copies[kMostArrays] = {};
  for (size_t i = 0; i < from.size(); ++i) std::copy_n(from[i] + whole, rest, copies[i].data());
  for (size_t i = 0; i < from.size() + num_results_; ++i) arrays[i] = copies[i].data();
  call(kWidth);
  for (size_t i = 0; i < num_results_; ++i) std::copy_n(copies[from.size() + i].data(), rest, results[i] + whole);
}

}  // namespace runnel::cpu
