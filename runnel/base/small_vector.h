#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <new>
#include <span>
#include <type_traits>

namespace runnel {

// A vector of trivially copyable elements that keeps up to N of them inside itself and goes to the heap
// beyond. Values are passed by copy, so an element of the vector itself may be pushed or inserted.
template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(N > 0 && alignof(T) <= alignof(std::max_align_t));

 public:
  using value_type = T;
  using size_type = size_t;
  using difference_type = ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() noexcept : data_(inline_data()), size_(0), capacity_(N) {}
  explicit SmallVector(size_t n, T value = T()) : SmallVector() { resize(n, value); }
  SmallVector(std::initializer_list<T> values) : SmallVector() { assign(values.begin(), values.end()); }
  explicit SmallVector(std::span<const T> values) : SmallVector() { copy_in(values.data(), values.size()); }
  template <std::forward_iterator It>
  SmallVector(It first, It last) : SmallVector() {
    assign(first, last);
  }
  SmallVector(const SmallVector& other) : SmallVector() { copy_in(other.data_, other.size_); }
  SmallVector(SmallVector&& other) noexcept : SmallVector() { take(other); }
  ~SmallVector() { free_heap(); }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) copy_in(other.data_, other.size_);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      free_heap();
      data_ = inline_data();
      capacity_ = N;
      take(other);
    }
    return *this;
  }
  SmallVector& operator=(std::initializer_list<T> values) {
    assign(values.begin(), values.end());
    return *this;
  }

  template <std::forward_iterator It>
  void assign(It first, It last) {
    size_ = 0;
    append(first, last);
  }
  void assign(size_t n, T value) {
    size_ = 0;
    resize(n, value);
  }
  // The range must not lie inside this vector.
  template <std::forward_iterator It>
  void append(It first, It last) {
    const size_t n = static_cast<size_t>(std::distance(first, last));
    reserve(size_ + n);
    copy_to(data_ + size_, first, last);
    size_ += static_cast<uint32_t>(n);
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  const T* cbegin() const noexcept { return data_; }
  const T* cend() const noexcept { return data_ + size_; }
  auto rbegin() noexcept { return std::reverse_iterator(end()); }
  auto rend() noexcept { return std::reverse_iterator(begin()); }
  auto rbegin() const noexcept { return std::reverse_iterator(end()); }
  auto rend() const noexcept { return std::reverse_iterator(begin()); }

  size_t size() const noexcept { return size_; }
  size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return size_ == 0; }
  bool is_inline() const noexcept { return data_ == inline_data(); }

  T& operator[](size_t i) {
    assert(i < size_);
    return data_[i];
  }
  const T& operator[](size_t i) const {
    assert(i < size_);
    return data_[i];
  }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  void push_back(T value) {
    if (size_ == capacity_) [[unlikely]] {
      grow(size_t{size_} + 1);
    }
    data_[size_++] = value;
  }
  void pop_back() {
    assert(size_ > 0);
    --size_;
  }
  T* insert(const T* at, T value) {
    const size_t i = static_cast<size_t>(at - data_);
    assert(i <= size_);
    if (size_ == capacity_) grow(size_t{size_} + 1);
    std::memmove(data_ + i + 1, data_ + i, (size_ - i) * sizeof(T));
    data_[i] = value;
    ++size_;
    return data_ + i;
  }
  // The inserted range must not lie inside this vector.
  template <std::forward_iterator It>
  T* insert(const T* at, It first, It last) {
    const size_t i = static_cast<size_t>(at - data_);
    const size_t n = static_cast<size_t>(std::distance(first, last));
    assert(i <= size_);
    reserve(size_ + n);
    std::memmove(data_ + i + n, data_ + i, (size_ - i) * sizeof(T));
    copy_to(data_ + i, first, last);
    size_ += static_cast<uint32_t>(n);
    return data_ + i;
  }
  T* erase(const T* at) { return erase(at, at + 1); }
  T* erase(const T* first, const T* last) {
    T* to = data_ + (first - data_);
    assert(first <= last && last <= end());
    std::memmove(to, last, static_cast<size_t>(end() - last) * sizeof(T));
    size_ -= static_cast<uint32_t>(last - first);
    return to;
  }
  void resize(size_t n, T value = T()) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = value;
    size_ = static_cast<uint32_t>(n);
  }
  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }
  void clear() noexcept { size_ = 0; }

  operator std::span<T>() noexcept { return {data_, size_}; }              // NOLINT: implicit on purpose
  operator std::span<const T>() const noexcept { return {data_, size_}; }  // NOLINT: implicit on purpose

  friend bool operator==(const SmallVector& a, const SmallVector& b) { return a == std::span<const T>(b); }
  friend bool operator==(const SmallVector& a, std::span<const T> b) {
    if (a.size_ != b.size()) return false;
    for (size_t i = 0; i < a.size_; ++i) {
      if (!(a.data_[i] == b[i])) return false;
    }
    return true;
  }

 private:
  T* inline_data() noexcept { return reinterpret_cast<T*>(inline_); }
  const T* inline_data() const noexcept { return reinterpret_cast<const T*>(inline_); }

  // A loop, for <algorithm> takes every program that includes this a tenth of a second to compile.
  template <class It>
  static void copy_to(T* to, It first, It last) {
    for (; first != last; ++first, ++to) *to = *first;
  }
  void free_heap() noexcept {
    if (!is_inline()) std::free(data_);
  }
  void copy_in(const T* from, size_t n) {
    reserve(n);
    if (n != 0) std::memmove(static_cast<void*>(data_), from, n * sizeof(T));
    size_ = static_cast<uint32_t>(n);
  }
  // Takes other's elements into this vector, which holds no heap block; other ends empty.
  void take(SmallVector& other) noexcept {
    if (other.is_inline()) {
      // A fixed count compiles to a few moves; bytes past size_ are never read as elements.
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
      std::memcpy(inline_, other.inline_, sizeof(inline_));
#ifndef __clang__
#pragma GCC diagnostic pop
#endif
    } else {
      data_ = other.data_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_data();
      other.capacity_ = N;
    }
    size_ = other.size_;
    other.size_ = 0;
  }
  void grow(size_t least) {
    const size_t doubled = size_t{capacity_} * 2;
    const size_t capacity = least > doubled ? least : doubled;
    if (capacity > UINT32_MAX) throw std::bad_alloc();
    void* block = std::malloc(capacity * sizeof(T));
    if (block == nullptr) throw std::bad_alloc();
    std::memcpy(block, static_cast<const void*>(data_), size_ * sizeof(T));
    free_heap();
    data_ = static_cast<T*>(block);
    capacity_ = static_cast<uint32_t>(capacity);
  }

  T* data_;
  uint32_t size_;
  uint32_t capacity_;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace runnel
