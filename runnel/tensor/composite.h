#pragma once

#include <initializer_list>
#include <iosfwd>
#include <string>
#include <vector>

#include "runnel/base/asked.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

// Values made of several tensors.

// Rows of a larger tensor: values[i] belongs at row indices[i]; rows may repeat and then add up.
struct IndexedSlices {
  Tensor values;
  Tensor indices;      // int32 or int64 vector
  Tensor dense_shape;  // the shape of the whole, a vector
};

// A tensor given by its elements that are not zero: values[i] stands at indices[i].
struct SparseTensor {
  Tensor indices;      // int64 [n, rank], in row-major order unless said otherwise
  Tensor values;       // [n]
  Tensor dense_shape;  // int64 [rank]

  DType dtype(SourceSite where = SourceSite::current()) const { return values.dtype(where); }
};
RUNNEL_API std::ostream& operator<<(std::ostream& out, const SparseTensor& sparse);

// Rows of differing lengths, one after the other in `values`: row i is values[row_splits[i] : row_splits[i + 1]].
// The rows may be ragged themselves; then there is one vector of splits for each ragged dimension, outermost first,
// and flat_values is what the innermost splits cut. Methods that compute are recorded and traced like ops.
class RUNNEL_API RaggedTensor {
 public:
  RaggedTensor() = default;

  // The splits are checked (0 first, never falling, the number of values last) when their values are known.
  static RaggedTensor from_row_splits(const Tensor& values, const Tensor& row_splits,
                                      SourceSite where = SourceSite::current());
  static RaggedTensor from_row_splits(const RaggedTensor& values, const Tensor& row_splits,
                                      SourceSite where = SourceSite::current());
  static RaggedTensor from_row_lengths(const Tensor& values, const Tensor& row_lengths,
                                       SourceSite where = SourceSite::current());
  static RaggedTensor from_row_lengths(const RaggedTensor& values, const Tensor& row_lengths,
                                       SourceSite where = SourceSite::current());
  static RaggedTensor from_nested_row_splits(const Tensor& flat_values, const std::vector<Tensor>& nested_row_splits,
                                             SourceSite where = SourceSite::current());
  // Row i of the result has the first lengths[i] elements of row i of a tensor; all of them when none are given.
  static RaggedTensor from_tensor(const Tensor& tensor, const Tensor& lengths = {},
                                  SourceSite where = SourceSite::current());
  // From lists: RaggedTensor::of<int>({{1, 2}, {3}}), or vectors of vectors.
  template <Element T>
  static RaggedTensor of(std::initializer_list<std::initializer_list<T>> rows) {
    return of<T>(std::vector<std::vector<T>>(rows.begin(), rows.end()));
  }
  template <Element T>
  static RaggedTensor of(std::initializer_list<std::initializer_list<std::initializer_list<T>>> rows) {
    std::vector<std::vector<std::vector<T>>> all;
    for (const auto& row : rows) all.emplace_back(row.begin(), row.end());
    return of<T>(all);
  }
  template <Element T>
  static RaggedTensor of(const std::vector<std::vector<T>>& rows) {
    std::vector<T> flat;
    std::vector<int64_t> lengths;
    for (const auto& row : rows) {
      lengths.push_back(static_cast<int64_t>(row.size()));
      flat.insert(flat.end(), row.begin(), row.end());
    }
    return from_row_splits(flat_tensor(flat), splits_of(lengths));
  }
  template <Element T>
  static RaggedTensor of(const std::vector<std::vector<std::vector<T>>>& rows) {
    std::vector<std::vector<T>> inner;
    std::vector<int64_t> lengths;
    for (const auto& row : rows) {
      lengths.push_back(static_cast<int64_t>(row.size()));
      inner.insert(inner.end(), row.begin(), row.end());
    }
    return from_row_splits(of<T>(inner), splits_of(lengths));
  }

  bool defined() const { return flat_values_.defined(); }
  DType dtype(SourceSite where = SourceSite::current()) const { return flat_values_.dtype(where); }
  int ragged_rank() const { return static_cast<int>(nested_row_splits_.size()); }
  const Tensor& flat_values() const { return flat_values_; }
  const std::vector<Tensor>& nested_row_splits() const { return nested_row_splits_; }
  const Tensor& row_splits(SourceSite where = SourceSite::current()) const;  // the outermost
  // The rows laid end to end: a Tensor when they are not ragged themselves, else ragged_values().
  const Tensor& values(SourceSite where = SourceSite::current()) const;
  RaggedTensor ragged_values(SourceSite where = SourceSite::current()) const;
  // What is known of the shape; ragged dimensions are unknown.
  PartialShape shape(SourceSite where = SourceSite::current()) const;

  Tensor row_lengths(SourceSite where = SourceSite::current()) const;
  Tensor nrows(SourceSite where = SourceSite::current()) const;  // int64 scalar
  // Row i; of a tensor with ragged rows ragged_row(i).
  Tensor operator[](const AskedPlace& i) const;
  RaggedTensor ragged_row(int64_t i, SourceSite where = SourceSite::current()) const;
  // Dense, shorter rows filled up with a value (0, false or ""); `shape` cuts or widens it where it is not -1.
  Tensor to_tensor(const Tensor& default_value = {}, const std::vector<int64_t>& shape = {},
                   SourceSite where = SourceSite::current()) const;

  std::string str() const;  // <tf.RaggedTensor [[1, 2], [3]]>

 private:
  RaggedTensor(Tensor flat_values, std::vector<Tensor> nested_row_splits)
      : flat_values_(std::move(flat_values)), nested_row_splits_(std::move(nested_row_splits)) {}
  static Tensor splits_of(const std::vector<int64_t>& lengths);
  template <class T>
  static Tensor flat_tensor(const std::vector<T>& flat) {
    const Shape shape{static_cast<int64_t>(flat.size())};
    if constexpr (std::same_as<T, double>) {  // as literals are: float32
      return Tensor::of<float>(std::vector<float>(flat.begin(), flat.end()), shape);
    } else if constexpr (Text<T>) {
      return Tensor::of<Bytes>(std::vector<Bytes>(flat.begin(), flat.end()), shape);
    } else {
      return Tensor::of<T>(flat, shape);
    }
  }

  Tensor flat_values_;
  std::vector<Tensor> nested_row_splits_;
};
RUNNEL_API std::ostream& operator<<(std::ostream& out, const RaggedTensor& ragged);

}  // namespace runnel
