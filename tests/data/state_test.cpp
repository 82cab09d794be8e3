// States that nobody saved: whatever they say, restoring them is an error or gives an iterator that works.
#include <random>

#include "runnel/data/node.h"
#include "tests/data/helpers.h"
#include "tests/support/iterator_states.h"

namespace runnel::data {
namespace {

TEST(State, DamagedOnesAreErrorsOrWork) {
  const test::IteratorStates all;
  std::mt19937 gen(3);
  for (size_t k = 0; k < all.size(); ++k) {
    const Dataset<Tensor>& d = all.pipeline(k);
    SCOPED_TRACE(d.node()->fingerprint());
    for (const int stop : {0, 4}) {
      auto it = d.make_iterator();
      for (int i = 0; i < stop; ++i) it.next();
      const std::string stages = test::IteratorStates::stages(it.save());
      test::IteratorStates::try_state(d, all.state(k, stages));
      for (size_t at = 0; at < std::min<size_t>(stages.size(), 40); ++at) {
        std::string damaged = stages;
        damaged[at] = static_cast<char>(gen());
        test::IteratorStates::try_state(d, all.state(k, damaged));
        damaged.resize(at);
        test::IteratorStates::try_state(d, all.state(k, damaged));
        // A number as large as there is.
        test::IteratorStates::try_state(
            d, all.state(k, stages.substr(0, at) + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + stages.substr(at + 1)));
      }
    }
  }
}

TEST(State, TheRightStatesWork) {
  const test::IteratorStates all;
  for (size_t k = 0; k < all.size(); ++k) {
    auto it = all.pipeline(k).make_iterator();
    auto resumed = all.pipeline(k).make_iterator();
    for (int i = 0; i < 3; ++i) it.next();
    resumed.restore(it.save());
    Ints expected = rest(it), got = rest(resumed);
    if (k == 8) std::sort(expected.begin(), expected.end()), std::sort(got.begin(), got.end());
    EXPECT_EQ(got, expected) << all.pipeline(k).node()->fingerprint();
  }
}

}  // namespace
}  // namespace runnel::data
