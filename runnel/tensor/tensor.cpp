#include "runnel/tensor/tensor.h"

#include <cstring>
#include <ostream>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/tensor/allocator.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

constinit std::atomic<uint32_t> detail::trace_epoch = 0;

TensorImpl::TensorImpl(DType dtype, Shape shape, Ref<Buffer> buffer, size_t offset)
    : dtype(dtype),
      shape(std::move(shape)),
      buffer(std::move(buffer)),
      data(static_cast<char*>(this->buffer->data()) + offset),
      num_elements(this->shape.num_elements()) {}

TensorImpl::TensorImpl(DType dtype, std::shared_ptr<Symbol> symbol) : dtype(dtype), symbol(std::move(symbol)) {
  const PartialShape& known = this->symbol->shape();
  if (known.is_static()) {
    shape = Shape(known);
    num_elements = shape.num_elements();
  } else {
    num_elements = -1;
  }
}

void* TensorImpl::operator new(size_t bytes) { return host_memory::allocate(bytes); }
void TensorImpl::operator delete(void* block, size_t bytes) noexcept { host_memory::release(block, bytes); }

namespace {

// The number of elements, or an Error where it or its bytes overflow.
size_t checked_count(DType dtype, const Shape& shape) {
  int64_t n = 1;
  bool overflow = false;
  bool zero = false;
  for (int64_t d : shape) {
    zero = zero || d == 0;
    overflow = overflow || __builtin_mul_overflow(n, d, &n);
  }
  if (zero) return 0;
  int64_t bytes = 0;
  if (overflow || __builtin_mul_overflow(n, static_cast<int64_t>(dtype_size(dtype)), &bytes)) [[unlikely]] {
    throw make_error(Code::resource_exhausted, "a {} tensor of shape {} has too many elements", dtype_name(dtype),
                     shape.str());
  }
  return static_cast<size_t>(n);
}

// The error of a read at `where`, which stands in the middle of its text.
Error read_error(Code code, const SourceSite& where, const std::string& before, const std::string& after = "") {
  if (is_library_line(where)) return Error(code, before + after);
  return Error(code, before + where.at() + after, {{.kind = ErrorFrame::Kind::call, .name = "", .where = where}});
}

size_t offset_in_buffer(const TensorImpl& t) {
  return static_cast<size_t>(static_cast<char*>(t.data) - static_cast<char*>(t.buffer->data()));
}

}  // namespace

Tensor Tensor::empty(DType dtype, const Shape& shape, Device& device) {
  const size_t count = checked_count(dtype, shape);
  try {
    return Tensor(make_ref<TensorImpl>(dtype, shape, Buffer::allocate(device, dtype, count), size_t{0}));
  } catch (const Error& e) {
    if (e.code() != Code::resource_exhausted) throw;
    throw make_error(Code::resource_exhausted, "no memory for a {} tensor of shape {} ({} bytes): {}",
                     dtype_name(dtype), shape.str(), count * dtype_size(dtype), e.what());
  }
}

Tensor Tensor::empty_for(DType dtype, size_t values, const Shape& shape, const SourceSite& where) {
  return at_caller(where, [&] {
    if (static_cast<int64_t>(values) != shape.num_elements()) {
      throw invalid_argument("{} values do not fill a tensor of shape {}", values, shape.str());
    }
    return empty(dtype, shape);
  });
}

Tensor Tensor::wrap(DType dtype, const Shape& shape, const void* data, std::shared_ptr<const void> owner,
                    SourceSite where) {
  return at_caller(where, [&] {
    if (!is_plain(dtype)) throw invalid_argument("memory of dtype {} cannot be wrapped", dtype_name(dtype));
    const size_t bytes = checked_count(dtype, shape) * dtype_size(dtype);
    return Tensor(make_ref<TensorImpl>(dtype, shape, Buffer::wrap(data, bytes, std::move(owner)), size_t{0}));
  });
}

Tensor Tensor::with_shape(const Shape& shape, SourceSite where) const {
  require_value("its elements", where);
  at_caller(where, [&] {
    if (checked_count(dtype(), shape) == static_cast<size_t>(num_elements())) return;
    throw invalid_argument("a tensor of {} elements does not fit shape {}", num_elements(), shape.str());
  });
  return Tensor(make_ref<TensorImpl>(dtype(), shape, impl_->buffer, offset_in_buffer(*impl_)));
}

Tensor Tensor::rows(int64_t begin, int64_t end, SourceSite where) const {
  require_value("its elements", where);
  if (rank() == 0 || begin < 0 || end < begin || end > shape()[0]) {
    throw at_line(invalid_argument("rows [{}, {}) of a tensor of shape {}", begin, end, shape().str()), where);
  }
  Dims dims = shape().dims();
  dims[0] = end - begin;
  const size_t row_bytes = shape()[0] == 0 ? 0 : num_bytes() / static_cast<size_t>(shape()[0]);
  return Tensor(make_ref<TensorImpl>(dtype(), Shape(dims), impl_->buffer,
                                     offset_in_buffer(*impl_) + static_cast<size_t>(begin) * row_bytes));
}

Tensor Tensor::to_host(SourceSite where) const {
  return is_symbolic() || device(where).is_host() ? *this : to(Device::cpu(), where);
}

Tensor Tensor::to(Device& target, SourceSite where) const {
  require_value("its elements", where);
  Device& source = device();
  if (&source == &target) return *this;
  if (!is_plain(dtype())) {
    throw at_line(invalid_argument("a {} tensor cannot leave the host", dtype_name(dtype())), where);
  }
  Tensor out = empty(dtype(), shape(), target);
  if (source.is_host()) {
    target.copy_from_host(out.impl_->data, impl_->data, num_bytes());
  } else if (target.is_host()) {
    source.copy_to_host(out.impl_->data, impl_->data, num_bytes());
  } else {
    return to_host().to(target);
  }
  return out;
}

Tensor::operator bool() const {
  value("its value", {});
  if (is_symbolic()) {
    throw make_error(
        Code::failed_precondition,
        "a tensor of a graph that is being built is neither true nor false: use IF (...), WHILE (...) or "
        "cond() for it, logical_and(a, b), logical_or(a, b) and logical_not(a) in the place of &&, || and !, "
        "where(c, a, b) in that of c ? a : b; {}",
        impl_->symbol->described());
  }
  require_value("its value", {});
  if (num_elements() != 1) {
    throw invalid_argument(
        "a condition is one value, not a tensor of shape {}: reduce_all or reduce_any makes one of it", shape().str());
  }
  Tensor t = to_host();
  if (dtype() == DType::bool_) return *t.data<bool>();
  bool truth = false;
  bool known = false;
  (numbers + strings_only).for_each([&]<class T>() {
    if (dtype_of<T> != t.dtype()) return;
    known = true;
    if constexpr (std::same_as<T, Bytes>) {
      truth = t.data<T>()->size() > 0;
    } else {
      truth = *t.data<T>() != T(0);
    }
  });
  if (!known) throw invalid_argument("a {} tensor is neither true nor false", dtype_name(dtype()));
  return truth;
}

double Tensor::as_real() const {
  check_single({});
  const Tensor t = to_host();
  double number = 0;
  bool known = false;
  (real_numbers + Types<bool>{}).for_each([&]<class T>() {
    if (dtype_of<T> != t.dtype()) return;
    known = true;
    if constexpr (std::integral<T> || std::floating_point<T>) {
      number = static_cast<double>(*t.data<T>());
    } else {
      number = static_cast<double>(static_cast<float>(*t.data<T>()));
    }
  });
  if (!known) throw invalid_argument("a {} tensor is no C++ number: cast it first", dtype_name(dtype()));
  return number;
}

int64_t Tensor::as_integer() const {
  check_single({});
  const Tensor t = to_host();
  int64_t number = 0;
  bool known = false;
  (integers + Types<bool>{}).for_each([&]<class T>() {
    if (dtype_of<T> != t.dtype()) return;
    known = true;
    if (!std::in_range<int64_t>(static_cast<uint64_t>(*t.data<T>())) && std::unsigned_integral<T>) does_not_fit();
    number = static_cast<int64_t>(*t.data<T>());
  });
  if (known) return number;
  const double real = as_real();
  // -2^63 is an int64, 2^63 is not; NaN compares false.
  if (!(real >= -9223372036854775808.0 && real < 9223372036854775808.0)) does_not_fit();
  return static_cast<int64_t>(real);
}

uint64_t Tensor::as_unsigned() const {
  check_single({});
  if (dtype() == DType::uint64) return *to_host().data<uint64_t>();
  if (is_float(dtype())) {
    const double real = as_real();
    if (!(real > -1.0 && real < 18446744073709551616.0)) does_not_fit();  // 2^64 is none; NaN compares false
    return static_cast<uint64_t>(real);
  }
  const int64_t number = as_integer();
  if (number < 0) does_not_fit();
  return static_cast<uint64_t>(number);
}

void Tensor::does_not_fit() const {
  throw invalid_argument("the value {} does not fit the C++ integer it is asked for as", str());
}

void Tensor::no_elements(DType asked) const {
  require_value("its elements", {});
  if (!device().is_host()) {
    throw make_error(Code::failed_precondition, "the elements are on {}: to_host() brings them here", device().name());
  }
  check_access(asked, {});
  throw invalid_argument("the tensor has no elements to be read");
}

void detail::no_host_element(size_t i, size_t size) {
  throw make_error(Code::out_of_range, "[Tensor.host] there is no element {}: the tensor has {}, numbered from 0", i,
                   size);
}

void Tensor::ragged_literal(size_t depth, int64_t expected, int64_t got, const SourceSite& where) {
  throw at_line(
      invalid_argument("a tensor literal must be rectangular: at depth {} one list has {} elements, another {}", depth,
                       expected, got),
      where);
}

void Tensor::check_access(DType asked, const SourceSite& where) const {
  require_value("its elements", where);
  if (asked != dtype()) {
    throw at_line(
        invalid_argument("the tensor holds {}, read as {}: cast it first", dtype_name(dtype()), dtype_name(asked)),
        where);
  }
}

void Tensor::check_single(const SourceSite& where) const {
  require_value("its value", where);
  if (num_elements() != 1) {
    throw at_line(invalid_argument("one value asked of a tensor of shape {}", shape().str()), where);
  }
}

void Tensor::refers_to_nothing(const char* asked, const char* file, const char* function, uint32_t line) const {
  const SourceSite where(file, function, line);
  if (impl_ && impl_->symbol) {
    throw read_error(Code::failed_precondition, where,
                     fmt::format("{} cannot be read: {}", asked, impl_->symbol->described()));
  }
  throw read_error(
      Code::failed_precondition, where,
      fmt::format("this Tensor refers to nothing, so {} cannot be read: it was never given a value", asked));
}

void Tensor::not_known(const char* asked, const char* file, const char* function, uint32_t line) const {
  throw read_error(
      Code::failed_precondition, SourceSite(file, function, line),
      fmt::format("the tensor has no value while a graph is being built, so {} cannot be read here", asked),
      "; " + impl_->symbol->described());
}

void Tensor::require_value(const char* what, const SourceSite& where) const {
  if (value(what, where).symbol) not_known(what, where.file, where.function, where.line);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.str(); }

}  // namespace runnel
