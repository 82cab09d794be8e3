#include "runnel/base/ref.h"

#include <gtest/gtest.h>

#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace runnel {
namespace {

struct Counted : RefCounted<Counted> {
  explicit Counted(int* deaths) : deaths_(deaths) {}
  virtual ~Counted() { ++*deaths_; }
  int* deaths_;
};
struct Derived : Counted {
  using Counted::Counted;
};

// Keeps the object alive in destroy() instead of deleting it.
class Recycled : public RefCounted<Recycled> {
 public:
  int returns = 0;
  void revive() { reset_ref(); }

 private:
  friend RefCounted<Recycled>;
  void destroy() { ++returns; }
};

TEST(Ref, OwnsCopiesMovesAndDrops) {
  int deaths = 0;
  {
    Ref<Counted> a = make_ref<Counted>(&deaths);
    EXPECT_TRUE(a && a->unique());
    Ref<Counted> b = a;
    EXPECT_EQ(a->ref_count(), 2);
    EXPECT_FALSE(a->unique());
    Ref<Counted> c = std::move(b);
    EXPECT_FALSE(b);  // NOLINT: the moved-from state is defined
    EXPECT_EQ(a->ref_count(), 2);
    EXPECT_EQ(a, c);
    c = nullptr;
    EXPECT_TRUE(a->unique());
    Ref<Counted>& same = a;
    a = same;
    EXPECT_TRUE(a->unique());
    EXPECT_EQ(deaths, 0);
  }
  EXPECT_EQ(deaths, 1);
}

TEST(Ref, AdoptReleaseSwap) {
  int deaths = 0;
  Ref<Counted> a = make_ref<Counted>(&deaths);
  Counted* raw = a.release();
  EXPECT_EQ(raw->ref_count(), 1);
  Ref<Counted> shared(raw);
  EXPECT_EQ(raw->ref_count(), 2);
  Ref<Counted> adopted = Ref<Counted>::adopt(raw);
  EXPECT_EQ(raw->ref_count(), 2);
  Ref<Counted> other = make_ref<Counted>(&deaths);
  swap(adopted, other);
  EXPECT_EQ(other.get(), raw);
  adopted.reset();
  EXPECT_EQ(deaths, 1);
  std::unordered_set<Ref<Counted>> set{shared, other};
  EXPECT_EQ(set.size(), 1u);
}

TEST(Ref, ConvertsToBase) {
  int deaths = 0;
  {
    Ref<Derived> d = Ref<Derived>::adopt(new Derived(&deaths));
    Ref<Counted> c = d;
    EXPECT_EQ(c->ref_count(), 2);
    Ref<Counted> m = std::move(d);
    EXPECT_EQ(c->ref_count(), 2);
  }
  EXPECT_EQ(deaths, 1);
}

TEST(Ref, DestroyHookMayRecycle) {
  Recycled object;
  Ref<Recycled>::adopt(&object).reset();
  EXPECT_EQ(object.returns, 1);
  object.revive();
  {
    Ref<Recycled> a = Ref<Recycled>::adopt(&object);
    Ref<Recycled> b = a;
  }
  EXPECT_EQ(object.returns, 2);
}

TEST(Ref, ManyThreadsShareOne) {
  int deaths = 0;
  Ref<Counted> root = make_ref<Counted>(&deaths);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([r = root] {
      for (int i = 0; i < 20000; ++i) Ref<Counted> copy = r;
    });
  }
  root.reset();
  for (std::thread& t : threads) t.join();
  threads.clear();
  EXPECT_EQ(deaths, 1);
}

}  // namespace
}  // namespace runnel
