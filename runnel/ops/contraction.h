#pragma once

// Internal: products of tensors whose dimensions carry labels, composed of public ops.

#include <map>
#include <vector>

#include "runnel/tensor/tensor.h"

namespace runnel {

using Labels = std::vector<int>;

struct Labelled {
  Tensor value;
  Labels labels;  // one per dimension, none twice
};

// The size of every label: a number, or the scalar tensor that computes it where it is not known yet.
class LabelSizes {
 public:
  // The label has the size of this dimension of `source`, `size` if that is known.
  void set(int label, int64_t size, const Tensor& source, int dimension);
  bool has(int label) const { return sizes_.contains(label); }
  int64_t known(int label) const;  // kUnknownDim where it is not
  // x in a shape with one dimension per group, the product of the group's sizes.
  Tensor reshaped(const Tensor& x, const std::vector<Labels>& groups) const;

 private:
  struct Size {
    int64_t known = kUnknownDim;
    Tensor source;
    int dimension = 0;
  };
  std::map<int, Size> sizes_;
};

// x with its dimensions in the order of `to` (a permutation of its labels).
Tensor reordered(const Labelled& x, const Labels& to);
// x summed over the labels that `keep` does not have.
Labelled summed(const Labelled& x, const Labels& keep);
// The product of a and b summed over the labels that both have and `keep` does not. Labels that only one has must be
// in `keep`. The result has the labels of both (in keep) first, then those of a, then those of b.
Labelled contracted(const Labelled& a, const Labelled& b, const Labels& keep, const LabelSizes& sizes);

}  // namespace runnel
