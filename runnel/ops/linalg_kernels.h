#pragma once

// Shared by the linear algebra families: Eigen over the matrices of a batch.
#ifndef EIGEN_DONT_PARALLELIZE
#define EIGEN_DONT_PARALLELIZE  // one thread per matrix; our pool runs the batch
#endif
#include <Eigen/Dense>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/op/builder.h"

namespace runnel {

inline constexpr auto matrix_types = Types<float, double>{} + complexes;
inline constexpr auto half_matrix_types = Types<Half>{} + matrix_types;  // of inverses and QR, as TensorFlow has them

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using MatrixMap = Eigen::Map<Matrix<T>>;
template <class T>
using ConstMatrixMap = Eigen::Map<const Matrix<T>>;

template <class T>
using RealOf = typename Eigen::NumTraits<T>::Real;

inline int64_t matrix_rows(const Tensor& t) { return t.shape()[t.rank() - 2]; }
inline int64_t matrix_cols(const Tensor& t) { return t.shape()[t.rank() - 1]; }

// Matrix number i of a tensor whose last two dimensions are the matrix.
template <class T>
ConstMatrixMap<T> matrix_at(const Tensor& t, int64_t i) {
  return ConstMatrixMap<T>(t.data<T>() + i * matrix_rows(t) * matrix_cols(t), matrix_rows(t), matrix_cols(t));
}
template <class T>
MatrixMap<T> mutable_matrix_at(const Tensor& t, int64_t i) {
  return MatrixMap<T>(t.mutable_data<T>() + i * matrix_rows(t) * matrix_cols(t), matrix_rows(t), matrix_cols(t));
}

inline int64_t num_matrices(const Tensor& t) {
  int64_t n = 1;
  for (int i = 0; i < t.rank() - 2; ++i) n *= t.shape()[i];
  return n;
}

template <class F>
void for_each_matrix(const Tensor& t, F f) {
  parallel_for(num_matrices(t), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

// Input i must be a batch of matrices (square ones); gives its batch dimensions.
inline void require_matrices(const InferContext& c, int i) { c.require_rank_at_least(i, 2); }
inline void require_square(const InferContext& c, int i) {
  c.require_rank_at_least(i, 2);
  const PartialShape& s = c.input(i);
  if (!s.has_rank()) return;
  const int64_t rows = s[s.rank() - 2];
  const int64_t cols = s[s.rank() - 1];
  if (rows >= 0 && cols >= 0 && rows != cols) throw invalid_argument("square matrices needed, got shape {}", s.str());
}
inline PartialShape batch_and(const PartialShape& s, std::initializer_list<int64_t> last) {
  if (!s.has_rank()) return s;
  Dims dims(s.begin(), s.end() - 2);
  dims.insert(dims.end(), last.begin(), last.end());
  return PartialShape(dims);
}
inline int64_t min_dim(int64_t a, int64_t b) { return a < 0 || b < 0 ? kUnknownDim : std::min(a, b); }

}  // namespace runnel
