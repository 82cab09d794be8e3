#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runnel/op/operand.h"

namespace runnel {

struct PrintOptions {
  std::string output_stream = "stdout";  // or "stderr"
  std::string sep = " ";
  std::string end = "\n";
  int64_t summarize = 3;  // elements at either end of long dimensions; -1: all
};

namespace detail {
// A text as it stands, or an operand.
struct PrintPiece {
  template <Text T>
  PrintPiece(const T& t) : text(t) {}  // NOLINT: implicit
  template <class T>
    requires(!Text<T>)
  PrintPiece(const T& value) : tensor(Operand(value).value()) {}  // NOLINT: implicit
  std::string text;
  Tensor tensor;
};
RUNNEL_API void print_pieces(std::span<const PrintPiece> pieces, const PrintOptions& options);
}  // namespace detail

// Writes texts and the values of tensors on a line. An op: in a function it prints whenever the function runs.
template <class... T>
void print(const T&... values) {
  const detail::PrintPiece pieces[] = {values...};
  detail::print_pieces(pieces, {});
}
template <class... T>
void print(const PrintOptions& options, const T&... values) {
  const detail::PrintPiece pieces[] = {values...};
  detail::print_pieces(pieces, options);
}

// An Error with the values of `data` unless the condition (one bool) holds.
RUNNEL_API void assert_(const Operand& condition, const std::vector<Tensor>& data = {}, int64_t summarize = 3);

// Seconds since 1970: float64. In a function, those of the moment when it runs.
RUNNEL_API Tensor timestamp(SourceSite where = SourceSite::current());

namespace debugging {
// The tensor itself; an Error with the message when it has NaN or infinite values.
RUNNEL_API Tensor check_numerics(const Operand& x, const std::string& message);
}  // namespace debugging

using HostFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;
// A C++ callback as an op: in a function it is called whenever the function runs, with values. It has no derivative.
// The results' dtypes are `output_dtypes`, their shapes (unknown unless given) `output_shapes`.
RUNNEL_API std::vector<Tensor> host_call(HostFunction f, const OperandList& inputs,
                                         const std::vector<DType>& output_dtypes,
                                         const std::vector<PartialShape>& output_shapes = {});

}  // namespace runnel
