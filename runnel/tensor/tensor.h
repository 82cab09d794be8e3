#pragma once

#include <atomic>
#include <compare>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/ref.h"
#include "runnel/base/source_site.h"
#include "runnel/tensor/buffer.h"
#include "runnel/tensor/dtype.h"
#include "runnel/tensor/shape.h"

namespace runnel {

class Tensor;
class Index;  // of x[...]: tensor/index.h, below

// What stands behind a Tensor while a function is being traced; the graph library derives from it.
class RUNNEL_API Symbol {
 public:
  virtual ~Symbol() = default;
  virtual const PartialShape& shape() const = 0;
  // The value where it is known already (a constant, the shape of a tensor of static shape), else null.
  virtual const Tensor* constant() const { return nullptr; }
  // The elements of an integer scalar or vector of which some are known already (the shape of a tensor of partly known
  // shape), kUnknownDim where they are not (or are just -1); null where none is.
  virtual const Dims* elements() const { return nullptr; }
  // For messages: what it stands for, and why that has no value here.
  virtual std::string described() const { return "it stands for a value that is known only when the graph runs"; }
};

namespace detail {
// Grows with every trace that begins; a value born since then is a constant of the traced function.
extern RUNNEL_API std::atomic<uint32_t> trace_epoch;
}  // namespace detail

// The value behind a handle: dense, row-major, immutable once the op that made it has returned.
class RUNNEL_API TensorImpl : public RefCounted<TensorImpl> {
 public:
  TensorImpl(DType dtype, Shape shape, Ref<Buffer> buffer, size_t offset);
  TensorImpl(DType dtype, std::shared_ptr<Symbol> symbol);

  static void* operator new(size_t bytes);
  static void operator delete(void* block, size_t bytes) noexcept;

  DType dtype;  // invalid: handles of it refer to nothing, as if they had no value behind them
  uint32_t epoch = detail::trace_epoch.load(std::memory_order_relaxed);
  Shape shape;
  Ref<Buffer> buffer;
  void* data = nullptr;      // first element; an address of the buffer's device
  int64_t num_elements = 0;  // -1 of a symbol whose shape is not fully known
  std::shared_ptr<Symbol> symbol;
};

// C++ types a tensor can be written down in. As in TensorFlow a literal without a dtype is int32 or float32:
// `Tensor(1.0)` is float32; ask for `constant(1.0, float64)` or Tensor::of<double>.
template <class T>
concept Number = std::is_arithmetic_v<T> || std::same_as<T, Half> || std::same_as<T, BFloat16> || ComplexNumber<T>;
template <class T>
concept Text = std::convertible_to<T, std::string_view> && !std::same_as<T, Bytes>;
template <class T>
concept Element = Number<T> || Text<T> || std::same_as<T, Bytes>;

// What one element converts to: float(loss), int64_t(count). Characters are no numbers.
template <class T>
inline constexpr bool is_character = std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
                                     std::same_as<T, char16_t> || std::same_as<T, char32_t>;
template <class T>
concept CppNumber = std::is_arithmetic_v<T> && !std::same_as<T, bool> && !is_character<T>;

namespace detail {
[[noreturn]] RUNNEL_API void no_host_element(size_t i, size_t size);
}  // namespace detail

// Elements read from a tensor on the host; keeps them alive as long as it lives itself. Converts to std::span where it
// has a name: a span or an address taken of a temporary one would refer to nothing, and does not compile.
//   const auto values = x.host<float>();
//   const std::span<const float> some = values;
template <class T>
class HostView {
 public:
  // No pointer: std::span takes temporaries of anything that has contiguous iterators.
  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;
    Iterator() = default;
    explicit Iterator(const T* at) : at_(at) {}
    reference operator*() const { return *at_; }
    pointer operator->() const { return at_; }
    reference operator[](difference_type n) const { return at_[n]; }
    Iterator& operator+=(difference_type n) { return at_ += n, *this; }
    Iterator& operator-=(difference_type n) { return at_ -= n, *this; }
    Iterator& operator++() { return ++at_, *this; }
    Iterator& operator--() { return --at_, *this; }
    Iterator operator++(int) { return Iterator(at_++); }
    Iterator operator--(int) { return Iterator(at_--); }
    friend Iterator operator+(Iterator i, difference_type n) { return i += n; }
    friend Iterator operator+(difference_type n, Iterator i) { return i += n; }
    friend Iterator operator-(Iterator i, difference_type n) { return i -= n; }
    friend difference_type operator-(Iterator a, Iterator b) { return a.at_ - b.at_; }
    friend auto operator<=>(Iterator, Iterator) = default;

   private:
    const T* at_ = nullptr;
  };

  HostView(Ref<Buffer> keep, const T* data, size_t n) : keep_(std::move(keep)), span_(data, n) {}
  Iterator begin() const { return Iterator(span_.data()); }
  Iterator end() const { return Iterator(span_.data() + span_.size()); }
  const T* data() const& { return span_.data(); }
  const T* data() const&& = delete;
  size_t size() const { return span_.size(); }
  bool empty() const { return span_.empty(); }
  // An Error where there is no such element.
  const T& operator[](size_t i) const& {
    if (i >= span_.size()) [[unlikely]] {
      detail::no_host_element(i, span_.size());
    }
    return span_[i];
  }
  T operator[](size_t i) const&& { return static_cast<const HostView&>(*this)[i]; }
  operator std::span<const T>() const& { return span_; }  // NOLINT
  operator std::span<const T>() const&& = delete;

 private:
  Ref<Buffer> keep_;
  std::span<const T> span_;
};

namespace detail {
// Threads on which a HandleLog is open (see tensor/handle_log.h): one load when there is none.
extern RUNNEL_API std::atomic<int> open_handle_logs;
RUNNEL_API void handle_assigned(Tensor* handle) noexcept;
RUNNEL_API void handle_destroyed(Tensor* handle) noexcept;
inline bool handles_are_logged() { return open_handle_logs.load(std::memory_order_relaxed) != 0; }
}  // namespace detail

// A handle to a value or, while tracing, to the output of a graph node. Cheap to copy; values never change.
class RUNNEL_API Tensor {
 public:
  Tensor() = default;  // refers to nothing: defined() is false
  Tensor(const Tensor&) = default;
  // Inside a traced block a move leaves its source as it is: the block's second pass starts from the same handles.
  Tensor(Tensor&& other) noexcept
      : impl_(detail::handles_are_logged() ? Ref<TensorImpl>(other.impl_) : std::move(other.impl_)) {}
  // Of handles that have a name only: `t[0] = 5` would change nothing, and does not compile.
  Tensor& operator=(const Tensor& other) & noexcept {
    if (detail::handles_are_logged()) [[unlikely]] {
      detail::handle_assigned(this);
    }
    impl_ = other.impl_;
    return *this;
  }
  Tensor& operator=(Tensor&& other) & noexcept {
    if (detail::handles_are_logged()) [[unlikely]] {
      detail::handle_assigned(this);
      impl_ = other.impl_;
    } else {
      impl_ = std::move(other.impl_);
    }
    return *this;
  }
  ~Tensor() {
    if (detail::handles_are_logged()) [[unlikely]] {
      detail::handle_destroyed(this);
    }
  }

  template <Element T>
  Tensor(const T& scalar) {  // NOLINT: implicit, so that numbers go where tensors go
    fill_from(&scalar, 1, {});
  }
  template <Element T>
  Tensor(std::initializer_list<T> values) {
    fill_from(values.begin(), values.size(), {static_cast<int64_t>(values.size())});
  }
  template <Element T>
  Tensor(std::initializer_list<std::initializer_list<T>> values, CallSite where = CallSite(SourceSite::current())) {
    from_nested<T>(values, where.site);
  }
  template <Element T>
  Tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values,
         CallSite where = CallSite(SourceSite::current())) {
    from_nested<T>(values, where.site);
  }
  template <Element T>
  Tensor(std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>> values,
         CallSite where = CallSite(SourceSite::current())) {
    from_nested<T>(values, where.site);
  }
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  // Uninitialised (strings are empty): for kernels and loaders that fill it before anyone else sees it.
  static Tensor empty(DType dtype, const Shape& shape, Device& device = Device::cpu());
  // A copy of `values`, dtype as the C++ type says (double stays float64).
  template <class T>
    requires(dtype_of<T> != DType::invalid)
  static Tensor of(std::span<const T> values, const Shape& shape, SourceSite where = SourceSite::current()) {
    Tensor t = empty_for(dtype_of<T>, values.size(), shape, where);
    T* to = t.mutable_data<T>();
    for (const T& value : values) *to++ = value;
    return t;
  }
  template <class T>
  static Tensor of(const std::vector<T>& values) {
    return of(values, Shape{static_cast<int64_t>(values.size())});
  }
  template <class T>
  static Tensor of(const std::vector<T>& values, const Shape& shape, SourceSite where = SourceSite::current()) {
    if constexpr (std::same_as<T, bool>) {  // vector<bool> has no elements to point at
      Tensor t = empty_for(DType::bool_, values.size(), shape, where);
      bool* to = t.mutable_data<bool>();
      for (const bool value : values) *to++ = value;
      return t;
    } else if constexpr (Text<T>) {
      return of<Bytes>(std::vector<Bytes>(values.begin(), values.end()), shape, where);
    } else {
      return of<T>(std::span<const T>(values), shape, where);
    }
  }
  // A list of literals as written, or a vector (of vectors): double stays float64. For parameters that get their dtype
  // from elsewhere.
  template <Element T, class List>
  static Tensor exactly(const List& values, const SourceSite& where) {
    Tensor t;
    if constexpr (std::same_as<T, double>) {
      Dims dims;
      std::vector<T> flat;
      flatten(values, 0, dims, flat, where);
      t = of<double>(flat, Shape(dims));
    } else {
      t.from_nested<T>(values, where);
    }
    return t;
  }
  // Shares foreign memory (a mapped file, a NumPy array) without copying; `owner` keeps it alive.
  static Tensor wrap(DType dtype, const Shape& shape, const void* data, std::shared_ptr<const void> owner,
                     SourceSite where = SourceSite::current());

  bool defined() const { return impl_ && impl_->dtype != DType::invalid; }
  bool is_symbolic() const { return impl_ && impl_->symbol; }
  DType dtype(SourceSite where = SourceSite::current()) const { return value("its dtype", where).dtype; }
  // The shape of a value; of a symbolic tensor only when it is fully known (else an Error).
  const Shape& shape(SourceSite where = SourceSite::current()) const& { return sized("its shape", where).shape; }
  // A reference would outlive the tensor.
  Shape shape(SourceSite where = SourceSite::current()) const&& {
    return static_cast<const Tensor&>(*this).shape(where);
  }
  PartialShape partial_shape(SourceSite where = SourceSite::current()) const {
    const TensorImpl& t = value("its shape", where);
    return t.symbol ? t.symbol->shape() : static_cast<const PartialShape&>(t.shape);
  }
  int rank(SourceSite where = SourceSite::current()) const { return shape(where).rank(); }
  int64_t dim(DimIndex i) const { return shape(i.where)[i]; }
  int64_t num_elements(SourceSite where = SourceSite::current()) const { return sized("its size", where).num_elements; }
  size_t num_bytes(SourceSite where = SourceSite::current()) const {
    return static_cast<size_t>(num_elements(where)) * dtype_size(dtype(where));
  }
  // The value where it is known: of a symbolic tensor only a constant one, else null.
  const Tensor* known_value(SourceSite where = SourceSite::current()) const {
    return value("its value", where).symbol ? impl_->symbol->constant() : this;
  }
  Device& device(SourceSite where = SourceSite::current()) const {
    return value("its device", where).symbol ? Device::cpu() : impl_->buffer->device();
  }
  std::string device_name(SourceSite where = SourceSite::current()) const { return device(where).name(); }

  // The elements, on the host: waits for pending work and copies from another device when needed.
  template <class T>
  HostView<T> host(SourceSite where = SourceSite::current()) const {
    check_access(dtype_of<T>, where);
    Tensor t = to_host();
    return HostView<T>(t.impl_->buffer, static_cast<const T*>(t.impl_->data),
                       static_cast<size_t>(t.impl_->num_elements));
  }
  // The one element of a tensor that has just one.
  template <class T>
  T item(SourceSite where = SourceSite::current()) const {
    if constexpr (std::same_as<T, std::string>) {
      return item<Bytes>(where).str();
    } else {
      check_access(dtype_of<T>, where);
      check_single(where);
      return *static_cast<const T*>(to_host().impl_->data);
    }
  }
  template <class T>
  std::vector<T> to_vector(SourceSite where = SourceSite::current()) const {
    if constexpr (std::same_as<T, std::string>) {
      auto view = host<Bytes>(where);
      std::vector<std::string> out;
      for (const Bytes& b : view) out.push_back(b.str());
      return out;
    } else {
      auto view = host<T>(where);
      return std::vector<T>(view.begin(), view.end());
    }
  }
  Tensor to_host(SourceSite where = SourceSite::current()) const;  // itself when it is there already; so below
  Tensor to(Device& target, SourceSite where = SourceSite::current()) const;

  // Truth of a tensor with one element, so that `if (x > 0)` works eagerly.
  explicit operator bool() const;
  // The one element as a C++ number, whatever its dtype: float(loss), int(count). Integers are cut towards zero; an
  // Error where the value does not fit. A float is rounded, as by cast: infinity where the value is too large.
  template <CppNumber T>
  explicit operator T() const {
    if constexpr (std::floating_point<T>) {
      return static_cast<T>(as_real());
    } else if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(uint64_t)) {
      return static_cast<T>(as_unsigned());
    } else {
      const int64_t value = as_integer();
      if (!std::in_range<T>(value)) does_not_fit();
      return static_cast<T>(value);
    }
  }

  // Same elements, another shape of the same size; shares the buffer.
  Tensor with_shape(const Shape& shape, SourceSite where = SourceSite::current()) const;
  // Rows [begin, end) of the first dimension; shares the buffer.
  Tensor rows(int64_t begin, int64_t end, SourceSite where = SourceSite::current()) const;

  // NumPy-style indexing: x[1], x(all, slice(0, 4)), x(ellipsis, -1), x(newaxis). A position or bound may be a tensor,
  // an integer scalar: x[i], x(slice(begin, end)). Recorded and traced like any op; defined with the array ops.
  Tensor operator[](const Index& i) const;
  Tensor operator()(const Index& i) const;
  Tensor operator()(const Index& i, const Index& j) const;
  Tensor operator()(const Index& i, const Index& j, const Index& k) const;
  Tensor operator()(const Index& i, const Index& j, const Index& k, const Index& l) const;
  Tensor operator()(const Index& i, const Index& j, const Index& k, const Index& l, const Index& m) const;
  Tensor operator()(const Index& i, const Index& j, const Index& k, const Index& l, const Index& m,
                    const Index& n) const;
  Tensor index(std::initializer_list<Index> indices) const;  // more of them

  std::string str() const;   // what TensorFlow prints: tf.Tensor(1.0, shape=(), dtype=float32)
  std::string repr() const;  // <tf.Tensor: shape=(), dtype=float32, numpy=1.0>

  // For kernels: the elements where they are, of a tensor on the host (a kernel's inputs are) that holds T; an Error
  // otherwise. Its bytes as char. They live as long as the tensor: host() keeps them. Only who made a tensor may write
  // to it, before anyone else sees it.
  template <class T>
  const T* data() const {
    return elements<T>();
  }
  template <class T>
  T* mutable_data() const {
    return elements<T>();
  }
  const void* raw() const { return impl_->data; }
  const Ref<TensorImpl>& impl() const { return impl_; }

 private:
  template <class T>
  static constexpr DType literal_dtype() {
    if constexpr (std::same_as<T, double> || std::same_as<T, long double>)
      return DType::float32;
    else if constexpr (Text<T>)
      return DType::string;
    else
      return dtype_of<T>;
  }
  // An Error, before there is one, unless so many values fill it.
  static Tensor empty_for(DType dtype, size_t values, const Shape& shape, const SourceSite& where);
  template <class T>
  void fill_from(const T* values, size_t n, const Shape& shape) {
    constexpr DType dtype = literal_dtype<T>();
    static_assert(dtype != DType::invalid, "no dtype has this C++ type");
    *this = empty(dtype, shape);
    if constexpr (dtype == DType::string) {
      for (size_t i = 0; i < n; ++i) mutable_data<Bytes>()[i] = Bytes(values[i]);
    } else if constexpr (dtype == DType::float32) {
      for (size_t i = 0; i < n; ++i) mutable_data<float>()[i] = static_cast<float>(values[i]);
    } else {
      for (size_t i = 0; i < n; ++i) mutable_data<T>()[i] = values[i];
    }
  }
  template <class T, class Nested>
  void from_nested(const Nested& values, const SourceSite& where) {
    Dims dims;
    std::vector<T> flat;
    flatten(values, 0, dims, flat, where);
    if constexpr (std::same_as<T, bool>) {
      *this = of<bool>(flat, Shape(dims));
    } else {
      fill_from(flat.data(), flat.size(), Shape(dims));
    }
  }
  template <class T, class List>
  static void flatten(const List& values, size_t depth, Dims& dims, std::vector<T>& flat, const SourceSite& where) {
    using Nested = typename List::value_type;
    const auto n = static_cast<int64_t>(values.size());
    if (dims.size() == depth) dims.push_back(n);
    if (dims[depth] != n) ragged_literal(depth, dims[depth], n, where);
    for (const Nested& v : values) {
      if constexpr (std::same_as<Nested, T>) {
        flat.push_back(v);
      } else {
        flatten(v, depth + 1, dims, flat, where);
      }
    }
  }
  [[noreturn]] static void ragged_literal(size_t depth, int64_t expected, int64_t got, const SourceSite& where);
  template <class T>
  T* elements() const {
    static_assert(dtype_of<T> != DType::invalid || std::same_as<T, char> || std::is_class_v<T>,
                  "no dtype has this C++ type");
    // Types that no dtype has are for moving bytes; an unsigned integer may stand for the signed one of its size.
    constexpr bool bytes = dtype_of<T> == DType::invalid;
    constexpr DType other = [] {
      if constexpr (std::unsigned_integral<T> && !std::same_as<T, bool>) {
        return dtype_of<std::make_signed_t<T>>;
      } else {
        return dtype_of<T>;
      }
    }();
    if (!impl_ || !impl_->buffer || !(bytes || impl_->dtype == dtype_of<T> || impl_->dtype == other) ||
        !impl_->buffer->device().is_host()) [[unlikely]] {
      no_elements(dtype_of<T>);
    }
    return static_cast<T*>(impl_->data);
  }
  [[noreturn]] void no_elements(DType asked) const;
  double as_real() const;
  int64_t as_integer() const;
  uint64_t as_unsigned() const;
  [[noreturn]] void does_not_fit() const;
  // What the handle refers to; an Error naming what was asked for where that is nothing.
  // (The place goes on in parts, for a reader that is not refused then makes none of it in memory.)
  const TensorImpl& value(const char* asked, const SourceSite& where) const {
    if (!defined()) [[unlikely]] {
      refers_to_nothing(asked, where.file, where.function, where.line);
    }
    return *impl_;
  }
  // The same where the shape is to be fully known.
  const TensorImpl& sized(const char* asked, const SourceSite& where) const {
    const TensorImpl& t = value(asked, where);
    if (t.num_elements < 0) [[unlikely]] {
      not_known(asked, where.file, where.function, where.line);
    }
    return t;
  }
  [[noreturn]] void refers_to_nothing(const char* asked, const char* file, const char* function, uint32_t line) const;
  [[noreturn]] void not_known(const char* asked, const char* file, const char* function, uint32_t line) const;
  void check_access(DType asked, const SourceSite& where) const;
  void check_single(const SourceSite& where) const;
  void require_value(const char* what, const SourceSite& where) const;

  Ref<TensorImpl> impl_;
};

RUNNEL_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace runnel

#include "runnel/tensor/index.h"
