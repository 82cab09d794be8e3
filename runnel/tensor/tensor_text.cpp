#include "runnel/base/format.h"
#include "runnel/tensor/format_array.h"
#include "runnel/tensor/tensor.h"

namespace runnel {
namespace {

// The elements on the host, kept alive while they are written.
struct Printable {
  explicit Printable(const Tensor& tensor) : host(tensor.to_host()) {}
  ArrayView view() const { return {host.dtype(), host.raw(), host.shape().dims()}; }

  Tensor host;
};

std::string symbolic_text(const Tensor& tensor) {
  const PartialShape shape = tensor.partial_shape();
  return fmt::format("shape={}, dtype={}", shape.has_rank() ? format_shape(shape.dims()) : "<unknown>",
                     dtype_name(tensor.dtype()));
}

}  // namespace

std::string Tensor::str() const {
  if (!defined()) {
    return "tf.Tensor(<undefined>)";
  }
  return is_symbolic() ? fmt::format("tf.Tensor({})", symbolic_text(*this)) : tensor_to_string(Printable(*this).view());
}

std::string Tensor::repr() const {
  if (!defined()) {
    return "<tf.Tensor: undefined>";
  }
  return is_symbolic() ? fmt::format("<tf.Tensor: {}>", symbolic_text(*this)) : tensor_repr(Printable(*this).view());
}

}  // namespace runnel
