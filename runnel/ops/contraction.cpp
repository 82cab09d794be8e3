#include "runnel/ops/contraction.h"

#include <algorithm>

#include "runnel/op/axes.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Labels joined(const Labels& a, const Labels& b, const Labels& c = {}) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

template <class Pred>
Labels filtered(const Labels& labels, Pred pred) {
  Labels kept;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(kept), pred);
  return kept;
}

// An operand as a stack of matrices: [batch, free, inner], or with the last two the other way round.
struct Matrices {
  Tensor value;
  bool flipped;  // [batch, inner, free]
};

// Both layouts serve a matrix product; the one the operand already has costs nothing.
bool lies_ready(const Labelled& x, const Labels& batch, const Labels& free, const Labels& inner) {
  return x.labels == joined(batch, free, inner) || x.labels == joined(batch, inner, free);
}

Matrices as_matrices(const Labelled& x, const Labels& batch, const Labels& free, const Labels& inner,
                     const LabelSizes& sizes, bool flip_by_default) {
  bool flipped = flip_by_default;
  if (x.labels == joined(batch, free, inner)) flipped = false;
  if (x.labels == joined(batch, inner, free)) flipped = true;
  const Labels& second = flipped ? inner : free;
  const Labels& third = flipped ? free : inner;
  const Tensor ordered = reordered(x, joined(batch, second, third));
  std::vector<Labels> groups;
  if (!batch.empty()) groups.push_back(batch);
  groups.push_back(second);
  groups.push_back(third);
  return {sizes.reshaped(ordered, groups), flipped};
}

std::vector<Labels> one_each(const Labels& labels) {
  std::vector<Labels> groups;
  for (int l : labels) groups.push_back({l});
  return groups;
}

// x laid out along `order`, with size 1 for the labels it does not have.
Tensor spread(const Labelled& x, const Labels& order, const LabelSizes& sizes) {
  const Tensor ordered = reordered(x, filtered(order, [&](int l) { return contains(x.labels, l); }));
  std::vector<Labels> groups;
  for (int l : order) groups.push_back(contains(x.labels, l) ? Labels{l} : Labels{});
  return sizes.reshaped(ordered, groups);
}

}  // namespace

void LabelSizes::set(int label, int64_t size, const Tensor& source, int dimension) {
  sizes_[label] = {size, source, dimension};
}

int64_t LabelSizes::known(int label) const { return sizes_.at(label).known; }

Tensor LabelSizes::reshaped(const Tensor& x, const std::vector<Labels>& groups) const {
  Dims dims;
  int unknown = 0;
  bool zero = false;
  for (const Labels& group : groups) {
    int64_t product = 1;
    for (int l : group) product = product < 0 || known(l) < 0 ? kUnknownDim : product * known(l);
    unknown += product < 0;
    zero = zero || product == 0;
    dims.push_back(product);
  }
  const PartialShape now = x.partial_shape();
  if (now.is_static() && unknown == 0 && now == PartialShape(dims)) return x;
  if (unknown == 0 || (unknown == 1 && !zero)) return reshape(x, dims);
  std::vector<Tensor> computed;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (dims[i] >= 0) {
      computed.push_back(int_scalar(dims[i]));
      continue;
    }
    Tensor product(1);
    for (int l : groups[i]) {
      const Size& s = sizes_.at(l);
      product = product * (s.known >= 0 ? int_scalar(s.known) : gather(shape(s.source), s.dimension));
    }
    computed.push_back(product);
  }
  return reshape(x, ShapeArg(stack(computed)));
}

Tensor reordered(const Labelled& x, const Labels& to) {
  if (x.labels == to) return x.value;
  Dims perm;
  for (int l : to) perm.push_back(std::find(x.labels.begin(), x.labels.end(), l) - x.labels.begin());
  return transpose(x.value, Axes(int_vector(perm)));
}

Labelled summed(const Labelled& x, const Labels& keep) {
  Dims axes;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (!contains(keep, x.labels[i])) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return x;
  return {reduce_sum(x.value, Axes(int_vector(axes))), filtered(x.labels, [&](int l) { return contains(keep, l); })};
}

Labelled contracted(const Labelled& a, const Labelled& b, const Labels& keep, const LabelSizes& sizes) {
  auto shared = [&](int l) { return contains(a.labels, l) && contains(b.labels, l); };
  const Labels free_a = filtered(a.labels, [&](int l) { return !shared(l); });
  const Labels free_b = filtered(b.labels, [&](int l) { return !shared(l); });
  auto batch_of = [&](const Labelled& x) {
    return filtered(x.labels, [&](int l) { return shared(l) && contains(keep, l); });
  };
  auto inner_of = [&](const Labelled& x) {
    return filtered(x.labels, [&](int l) { return shared(l) && !contains(keep, l); });
  };
  // The order of the shared labels is free: take the one that moves fewer elements.
  Labels batch = batch_of(a);
  Labels inner = inner_of(a);
  int best = -1;
  for (const Labelled* of_batch : {&a, &b}) {
    for (const Labelled* of_inner : {&a, &b}) {
      const Labels bt = batch_of(*of_batch);
      const Labels in = inner_of(*of_inner);
      const int ready = lies_ready(a, bt, free_a, in) + lies_ready(b, bt, free_b, in);
      if (ready <= best) continue;
      best = ready;
      batch = bt;
      inner = in;
    }
  }
  const Labels result = joined(batch, free_a, free_b);
  if (inner.empty() || (free_a.empty() && free_b.empty() && !batch.empty())) {
    // Nothing a matrix product could gain: element by element.
    const Labels order = joined(result, inner);
    const Tensor product = spread(a, order, sizes) * spread(b, order, sizes);
    return summed({product, order}, result);
  }
  const Matrices ma = as_matrices(a, batch, free_a, inner, sizes, false);
  const Matrices mb = as_matrices(b, batch, free_b, inner, sizes, true);
  const Tensor product = matmul(ma.value, mb.value, {.transpose_a = ma.flipped, .transpose_b = !mb.flipped});
  return {sizes.reshaped(product, one_each(result)), result};
}

}  // namespace runnel
