#include "runnel/tensor/summary_text.h"

#include "runnel/base/decimal.h"
#include "runnel/base/format.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {
namespace {

template <class T>
std::string short_text(const T& v) {
  if constexpr (std::is_same_v<T, Bytes>) {
    return '"' + v.str() + '"';
  } else if constexpr (std::is_same_v<T, bool>) {
    return v ? "1" : "0";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(v);
  } else if constexpr (is_complex(dtype_of<T>)) {
    return "(" + general_text(v.real()) + "," + general_text(v.imag()) + ")";
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return general_text(static_cast<float>(v));
  } else {
    return general_text(v);
  }
}

template <class T>
void print_dim(const T* data, const Shape& shape, int dim, int64_t summarize, std::string& out) {
  const int rank = shape.rank();
  if (dim == rank) {
    out += short_text(*data);
    return;
  }
  int64_t step = 1;
  for (int i = dim + 1; i < rank; ++i) step *= shape[i];
  const int64_t n = shape[dim];
  const bool cut = summarize >= 0 && summarize < (n + 1) / 2;
  // Elements stand in a line; rows start new lines, indented under the opening bracket.
  const std::string gap = dim == rank - 1 ? " "
                                          : std::string(static_cast<size_t>(rank - dim - 1), '\n') +
                                                std::string(static_cast<size_t>(dim) + 1, ' ');
  out += '[';
  for (int64_t i = 0; i < n; ++i) {
    if (cut && i == summarize) {
      out += gap;
      out += "...";
      i = n - summarize - 1;
      continue;
    }
    if (i > 0) out += gap;
    print_dim(data + i * step, shape, dim + 1, summarize, out);
  }
  out += ']';
}

}  // namespace

std::string summary_text(const Tensor& t, int64_t summarize) {
  if (t.rank() == 0 && summarize == 0) return "...";
  const Tensor host = t.to_host();
  std::string out;
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> == host.dtype()) print_dim(host.data<T>(), host.shape(), 0, summarize, out);
  });
  if (!is_plain(t.dtype()) && t.dtype() != DType::string) out = fmt::format("<{}>", dtype_name(t.dtype()));
  return out;
}

}  // namespace runnel
