#include "runnel/ops/random_state.h"

#include <utility>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/op/random_context.h"

namespace runnel::random {
namespace {

// The seed, the blocks drawn from its stream, then for each stream of an op its two seeds and the blocks drawn from it.
constexpr size_t kHead = 2, kPerStream = 3;

Tensor to_tensor(const RandomContext::State& state) {
  std::vector<int64_t> numbers{static_cast<int64_t>(state.seed), static_cast<int64_t>(state.offset)};
  for (const auto& [seeds, offset] : state.op_offsets) {
    numbers.insert(numbers.end(), {seeds.seed, seeds.seed2, static_cast<int64_t>(offset)});
  }
  return Tensor::of(numbers);
}

void check_random_state(const std::vector<Tensor>& values) {
  const Tensor& t = values.at(0);
  const auto count = static_cast<size_t>(t.num_elements());
  if (t.dtype() == DType::int64 && t.shape().rank() == 1 && count >= kHead && (count - kHead) % kPerStream == 0) return;
  throw invalid_argument("[random] the saved random state is {}{}, not a list of int64 of the right length",
                         dtype_name(t.dtype()), t.shape().str());
}

RandomContext::State from_tensor(const Tensor& t) {
  const std::vector<int64_t> numbers = t.to_vector<int64_t>();
  RandomContext::State state{.seed = static_cast<uint64_t>(numbers[0]), .offset = static_cast<uint64_t>(numbers[1])};
  for (size_t i = kHead; i < numbers.size(); i += kPerStream) {
    state.op_offsets[{numbers[i], numbers[i + 1]}] = static_cast<uint64_t>(numbers[i + 2]);
  }
  return state;
}

class ProgramState : public Trackable {
 public:
  bool holds_weights() const override { return false; }
  std::vector<SavableValue> savable_values() override {
    return {{.name = "RANDOM_STATE",
             .full_name = "random_state",
             .get = [] { return std::vector{to_tensor(RandomContext::current().state())}; },
             .check = check_random_state,
             .set = [](const std::vector<Tensor>& v) { RandomContext::current().restore(from_tensor(v.at(0))); }}};
  }
};

}  // namespace

std::shared_ptr<Trackable> program_state() { return std::make_shared<ProgramState>(); }

}  // namespace runnel::random
