#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace runnel {

// Base of a class T that counts its owners: `class Buffer : public RefCounted<Buffer>`. An object starts with
// one owner; hand it to Ref<T>::adopt (or make_ref). The last owner calls T::destroy(), which deletes the
// object unless T defines its own (accessible to RefCounted<T>) `void destroy()`, e.g. to return it to a
// cache.
template <class T>
class RefCounted {
 public:
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void add_ref() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }

  void drop_ref() const noexcept {
    // A sole owner needs no read-modify-write: nobody else can gain or drop a reference meanwhile.
    // The acquire load pairs with the release of the drops that came before.
    if (count_.load(std::memory_order_acquire) == 1 || count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      static_cast<T*>(const_cast<RefCounted*>(this))->destroy();
    }
  }

  // True when the caller's reference is the only one: the object may then be changed in place.
  bool unique() const noexcept { return count_.load(std::memory_order_acquire) == 1; }
  int32_t ref_count() const noexcept { return count_.load(std::memory_order_relaxed); }

 protected:
  RefCounted() noexcept = default;
  ~RefCounted() = default;

  void destroy() { delete static_cast<T*>(this); }
  // Gives a recycled object (one whose destroy() kept it) its first owner again.
  void reset_ref() noexcept { count_.store(1, std::memory_order_relaxed); }

 private:
  mutable std::atomic<int32_t> count_{1};
};

// An owning pointer to an object with add_ref() and drop_ref().
template <class T>
class Ref {
 public:
  using element_type = T;

  constexpr Ref() noexcept = default;
  constexpr Ref(std::nullptr_t) noexcept {}  // NOLINT: implicit, as with the standard pointers
  // Shares: adds a reference. adopt() takes over one that the caller already holds.
  explicit Ref(T* p) noexcept : p_(p) {
    if (p_ != nullptr) p_->add_ref();
  }
  static Ref adopt(T* p) noexcept {
    Ref r;
    r.p_ = p;
    return r;
  }

  Ref(const Ref& other) noexcept : Ref(other.p_) {}
  Ref(Ref&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& other) noexcept : Ref(static_cast<T*>(other.get())) {}  // NOLINT
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U>&& other) noexcept : p_(other.release()) {}  // NOLINT
  ~Ref() {
    if (p_ != nullptr) p_->drop_ref();
  }

  Ref& operator=(const Ref& other) noexcept {
    Ref(other).swap(*this);
    return *this;
  }
  Ref& operator=(Ref&& other) noexcept {
    Ref(std::move(other)).swap(*this);
    return *this;
  }
  Ref& operator=(std::nullptr_t) noexcept {
    reset();
    return *this;
  }

  T* get() const noexcept { return p_; }
  T* operator->() const noexcept {
    assert(p_ != nullptr);
    return p_;
  }
  T& operator*() const noexcept {
    assert(p_ != nullptr);
    return *p_;
  }
  explicit operator bool() const noexcept { return p_ != nullptr; }

  // Gives up ownership without dropping the reference; the caller holds it now.
  [[nodiscard]] T* release() noexcept { return std::exchange(p_, nullptr); }
  void reset() noexcept { Ref().swap(*this); }
  void swap(Ref& other) noexcept { std::swap(p_, other.p_); }
  friend void swap(Ref& a, Ref& b) noexcept { a.swap(b); }

  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.p_ == b.p_; }
  friend bool operator==(const Ref& a, std::nullptr_t) noexcept { return a.p_ == nullptr; }

 private:
  T* p_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>::adopt(new T(std::forward<Args>(args)...));
}

}  // namespace runnel

template <class T>
struct std::hash<runnel::Ref<T>> {
  size_t operator()(const runnel::Ref<T>& r) const noexcept { return std::hash<T*>()(r.get()); }
};
