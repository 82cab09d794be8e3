// Einstein summation and tensordot, composed of transposes, matrix products and sums.
#include "runnel/ops/einsum.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/contraction.h"
#include "runnel/ops/math.h"
#include "runnel/ops/reduce.h"

namespace runnel {
namespace {

// Dimensions under an ellipsis are labelled from the right, so that those of different operands meet.
constexpr int kEllipsis = 1000;

struct Subscript {
  Labels labels;         // letters
  int ellipsis_at = -1;  // how many letters stand before "..."; -1 without one
  std::string text;

  int count(int label) const { return static_cast<int>(std::count(labels.begin(), labels.end(), label)); }
};

class Einsum {
 public:
  Einsum(std::string_view equation, const OperandList& operands) : equation_(equation), given_(operands.values()) {}

  Tensor run() {
    parse();
    flatten_ellipses();
    for (size_t i = 0; i < inputs_.size(); ++i) operands_.push_back(label(i));
    resolve_output();
    for (size_t i = 0; i < operands_.size(); ++i) drop_broadcast(i);
    for (size_t i = 0; i < operands_.size(); ++i) operands_[i] = summed(operands_[i], needed_besides(i, i));
    while (operands_.size() > 1) contract_best_pair();
    const Tensor y = finish(operands_[0]);
    if (!under_ellipsis_.defined() || output_.ellipsis_at < 0) return y;
    const Tensor dims = shape(y);
    const int at = output_.ellipsis_at;
    const Tensor apart = reshape(y, concat({dims(slice(0, at)), under_ellipsis_, dims(slice(at + 1, none))}, 0));
    if (!known_under_ellipsis_.has_rank()) return apart;
    Dims known = y.partial_shape().dims();
    known.erase(known.begin() + at);
    known.insert(known.begin() + at, known_under_ellipsis_.begin(), known_under_ellipsis_.end());
    return ensure_shape(apart, PartialShape(known));
  }

 private:
  template <class... Args>
  Error error(fmt::format_string<Args...> text, Args&&... args) const {
    std::string shapes;
    for (const Tensor& t : given_) shapes += (shapes.empty() ? "" : ", ") + t.partial_shape().str();
    return invalid_argument("[Einsum] '{}': {}; operands {}", equation_, fmt::format(text, std::forward<Args>(args)...),
                            shapes);
  }

  Subscript parse_subscript(std::string_view text) const {
    Subscript s;
    s.text = text;
    for (size_t i = 0; i < text.size(); ++i) {
      if (std::isalpha(static_cast<unsigned char>(text[i]))) {
        s.labels.push_back(text[i]);
      } else if (text.substr(i, 3) == "...") {
        if (s.ellipsis_at >= 0) throw error("'{}' has two ellipses", text);
        s.ellipsis_at = static_cast<int>(s.labels.size());
        i += 2;
      } else {
        throw error("'{}' is no label", text[i]);
      }
    }
    return s;
  }

  void parse() {
    std::string text = equation_;
    std::erase_if(text, [](unsigned char c) { return std::isspace(c); });
    const size_t arrow = text.find("->");
    const std::string left = text.substr(0, arrow);
    for (size_t begin = 0;;) {
      const size_t comma = left.find(',', begin);
      inputs_.push_back(parse_subscript(std::string_view(left).substr(begin, comma - begin)));
      if (comma == std::string::npos) break;
      begin = comma + 1;
    }
    if (inputs_.size() != given_.size()) throw error("names {} operands, got {}", inputs_.size(), given_.size());
    if (arrow == std::string::npos) {
      output_ = implied_output();
    } else {
      output_ = parse_subscript(std::string_view(text).substr(arrow + 2));
    }
    for (int l : output_.labels) {
      const bool found =
          std::any_of(inputs_.begin(), inputs_.end(), [&](const Subscript& s) { return s.count(l) > 0; });
      if (!found) throw error("label '{}' of the output is in no operand", static_cast<char>(l));
    }
  }

  // The labels that appear once, in alphabetical order, after the ellipsis.
  Subscript implied_output() const {
    Subscript out;
    for (int l = 'A'; l <= 'z'; ++l) {
      int count = 0;
      for (const Subscript& s : inputs_) count += s.count(l);
      if (count == 1) out.labels.push_back(l);
    }
    for (const Subscript& s : inputs_) {
      if (s.ellipsis_at >= 0) out.ellipsis_at = 0;
    }
    return out;
  }

  // The sizes under the ellipsis of operand i as far as they are known.
  PartialShape under_ellipsis(size_t i) const {
    const PartialShape s = given_[i].partial_shape();
    const auto letters = static_cast<int>(inputs_[i].labels.size());
    if (!s.has_rank() || s.rank() < letters) return PartialShape::unknown();
    const auto first = s.begin() + inputs_[i].ellipsis_at;
    return PartialShape(Dims(first, first + (s.rank() - letters)));
  }

  // Where an ellipsis stands for dimensions whose number is not known, or, in several operands, for sizes of which it
  // is not known whether they broadcast, those of every operand are broadcast and made one dimension; run() takes it
  // apart in the end.
  void flatten_ellipses() {
    const auto has_ellipsis = [&](size_t i) { return inputs_[i].ellipsis_at >= 0; };
    bool unranked = false, unsized = false;
    int several = 0;
    for (size_t i = 0; i < given_.size(); ++i) {
      if (!has_ellipsis(i)) continue;
      unranked = unranked || !under_ellipsis(i).has_rank();
      unsized = unsized || !under_ellipsis(i).is_static();
      ++several;
    }
    if (!unranked && !(unsized && several > 1)) return;
    struct Sizes {
      Tensor before, under, after;
    };
    std::vector<Sizes> sizes(given_.size());
    size_t ellipses = 0;
    for (size_t i = 0; i < given_.size(); ++i) {
      if (!has_ellipsis(i)) continue;
      const Tensor dims = shape(given_[i]);
      const int64_t first = inputs_[i].ellipsis_at;
      const int64_t last = static_cast<int64_t>(inputs_[i].labels.size()) - first;
      sizes[i] = {dims(slice(0, first)), last > 0 ? dims(slice(first, -last)) : dims(slice(first, none)),
                  last > 0 ? dims(slice(-last, none)) : dims(slice(0, 0))};
      const PartialShape known = under_ellipsis(i);
      known_under_ellipsis_ = ++ellipses == 1 ? known : broadcast_shapes(known_under_ellipsis_, known);
      under_ellipsis_ = ellipses == 1 ? sizes[i].under : broadcast_sizes(under_ellipsis_, sizes[i].under);
    }
    for (size_t i = 0; i < given_.size(); ++i) {
      if (!has_ellipsis(i)) continue;
      const auto& [before, under, after] = sizes[i];
      Tensor x = given_[i];
      if (ellipses > 1) x = broadcast_to(x, concat({before, under_ellipsis_, after}, 0));
      x = reshape(x, concat({before, reshape(reduce_prod(under_ellipsis_), {1}), after}, 0));
      given_[i] = ensure_shape(x, PartialShape(Dims(inputs_[i].labels.size() + 1, kUnknownDim)));
    }
  }
  static Tensor broadcast_sizes(const Tensor& a, const Tensor& b) {
    const Tensor rank = maximum(size(a), size(b));
    const auto padded = [&](const Tensor& t) { return concat({fill(reshape(rank - size(t), {1}), 1), t}, 0); };
    const Tensor x = padded(a);
    const Tensor y = padded(b);
    return where(equal(x, 1), y, x);
  }

  // Operand i with a label for every dimension, diagonals taken.
  Labelled label(size_t i) {
    const Subscript& s = inputs_[i];
    const Tensor& x = given_[i];
    const PartialShape shape = x.partial_shape();
    const int letters = static_cast<int>(s.labels.size());
    int covered = 0;
    if (shape.has_rank()) {
      covered = shape.rank() - letters;
      if (covered < 0 || (covered > 0 && s.ellipsis_at < 0)) {
        throw error("'{}' has {} labels, operand {} has shape {}", s.text, letters, i, shape.str());
      }
    }
    Labels labels = s.labels;
    Labels under;
    for (int k = covered - 1; k >= 0; --k) under.push_back(kEllipsis + k);
    if (s.ellipsis_at >= 0) labels.insert(labels.begin() + s.ellipsis_at, under.begin(), under.end());
    widest_ = std::max(widest_, covered);

    for (size_t d = 0; d < labels.size(); ++d) {
      const int64_t size = shape.has_rank() ? shape[static_cast<int>(d)] : kUnknownDim;
      note_size(labels[d], size, x, static_cast<int>(d), i);
    }
    return diagonals({x, labels});
  }

  void note_size(int l, int64_t size, const Tensor& x, int dimension, size_t operand) {
    const int64_t before = sizes_.has(l) ? sizes_.known(l) : kUnknownDim;
    if (before >= 0 && size >= 0 && before != size) {
      if (l < kEllipsis) {
        throw error("label '{}' has size {} and, in operand {}, size {}", static_cast<char>(l), before, operand, size);
      }
      if (before != 1 && size != 1) {
        throw error("sizes {} and {} under the ellipsis do not broadcast (operand {})", before, size, operand);
      }
    }
    const bool stretches = l >= kEllipsis && before == 1 && size != 1;
    if (before < 0 || stretches) {
      if (!sizes_.has(l) || size >= 0 || stretches) sizes_.set(l, size, x, dimension);
    }
  }

  // Labels that repeat within x reduced to one: the elements where the indices agree.
  Labelled diagonals(Labelled x) {
    for (size_t d = 0; d < x.labels.size(); ++d) {
      const int l = x.labels[d];
      if (std::count(x.labels.begin(), x.labels.end(), l) < 2) continue;
      // The two dimensions to the end, where they are matrices.
      const size_t first = d;
      const size_t second = static_cast<size_t>(
          std::find(x.labels.begin() + static_cast<ptrdiff_t>(d) + 1, x.labels.end(), l) - x.labels.begin());
      Dims perm;
      Labels rest;
      for (size_t i = 0; i < x.labels.size(); ++i) {
        if (i == first || i == second) continue;
        perm.push_back(static_cast<int64_t>(i));
        rest.push_back(x.labels[i]);
      }
      perm.push_back(static_cast<int64_t>(first));
      perm.push_back(static_cast<int64_t>(second));
      rest.push_back(l);
      return diagonals({linalg::diag_part(transpose(x.value, Axes(int_vector(perm)))), rest});
    }
    return x;
  }

  void resolve_output() {
    Labels under;
    for (int k = widest_ - 1; k >= 0; --k) under.push_back(kEllipsis + k);
    if (output_.ellipsis_at < 0 && !under.empty()) throw error("the output lacks the operands' ellipsis");
    out_labels_ = output_.labels;
    if (output_.ellipsis_at >= 0) {
      out_labels_.insert(out_labels_.begin() + output_.ellipsis_at, under.begin(), under.end());
    }
  }

  // Size 1 under an ellipsis where another operand has more: the dimension goes, the other one supplies it.
  void drop_broadcast(size_t i) {
    Labelled& x = operands_[i];
    const PartialShape shape = x.value.partial_shape();
    std::vector<int64_t> axes;
    Labels kept;
    for (size_t d = 0; d < x.labels.size(); ++d) {
      const int l = x.labels[d];
      if (l >= kEllipsis && shape[static_cast<int>(d)] == 1 && sizes_.known(l) != 1) {
        axes.push_back(static_cast<int64_t>(d));
      } else {
        kept.push_back(l);
      }
    }
    if (!axes.empty()) x = {squeeze(x.value, axes), kept};
  }

  // The labels that the output or an operand other than these two still needs.
  Labels needed_besides(size_t i, size_t j) const {
    Labels needed = out_labels_;
    for (size_t k = 0; k < operands_.size(); ++k) {
      if (k != i && k != j) needed.insert(needed.end(), operands_[k].labels.begin(), operands_[k].labels.end());
    }
    return needed;
  }

  double elements(const Labels& labels) const {
    double n = 1;
    for (int l : labels) n *= static_cast<double>(std::max<int64_t>(1, sizes_.known(l)));
    return n;
  }

  // Of all pairs the one whose product saves the most elements.
  void contract_best_pair() {
    size_t left = 0;
    size_t right = 1;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; operands_.size() > 2 && i < operands_.size(); ++i) {
      for (size_t j = i + 1; j < operands_.size(); ++j) {
        const Labels needed = needed_besides(i, j);
        Labels kept;
        for (int l : needed) {
          const bool here = has(operands_[i].labels, l) || has(operands_[j].labels, l);
          if (here && !has(kept, l)) kept.push_back(l);
        }
        const double gain = elements(kept) - elements(operands_[i].labels) - elements(operands_[j].labels);
        if (gain < least) {
          least = gain;
          left = i;
          right = j;
        }
      }
    }
    const Labels needed = needed_besides(left, right);
    if (operands_.size() == 2 && ends_with_first(operands_[left], operands_[right])) {
      std::swap(operands_[left], operands_[right]);  // the product then comes in the order of the output
    }
    Labelled product = contracted(operands_[left], operands_[right], needed, sizes_);
    operands_.erase(operands_.begin() + static_cast<ptrdiff_t>(right));
    operands_[left] = std::move(product);
    operands_[left] = summed(operands_[left], needed_besides(left, left));
  }

  // Does the output end with a label that only a has, after one that only b has?
  bool ends_with_first(const Labelled& a, const Labelled& b) const {
    if (out_labels_.empty()) return false;
    const int last = out_labels_.back();
    return has(a.labels, last) && !has(b.labels, last) && std::any_of(b.labels.begin(), b.labels.end(), [&](int l) {
             return has(out_labels_, l) && !has(a.labels, l);
           });
  }

  static bool has(const Labels& labels, int l) { return std::find(labels.begin(), labels.end(), l) != labels.end(); }

  // The output's labels, each once; a label that repeats there is spread over a diagonal.
  Tensor finish(const Labelled& x) {
    Labels once;
    for (int l : out_labels_) {
      if (!has(once, l)) once.push_back(l);
    }
    Tensor y = reordered(summed(x, once), once);
    Labels have = once;
    for (size_t d = 0; d < out_labels_.size(); ++d) {
      if (d < have.size() && have[d] == out_labels_[d]) continue;
      // A new dimension at d: zero except where it agrees with the label's first one.
      const int l = out_labels_[d];
      const auto first = static_cast<size_t>(std::find(have.begin(), have.end(), l) - have.begin());
      const Tensor index = range(shape(y)(static_cast<int64_t>(first)));
      have.insert(have.begin() + static_cast<ptrdiff_t>(d), l);
      const auto along = [&](size_t at) {
        Dims dims(have.size(), 1);
        dims[at] = -1;
        return reshape(index, dims);
      };
      y = expand_dims(y, static_cast<int>(d));
      y = y * cast(equal(along(first), along(d)), y.dtype());
    }
    return y;
  }

  std::string equation_;
  std::vector<Tensor> given_;
  std::vector<Subscript> inputs_;
  Subscript output_;
  int widest_ = 0;  // dimensions under the longest ellipsis
  Labels out_labels_;
  LabelSizes sizes_;
  std::vector<Labelled> operands_;
  Tensor under_ellipsis_;  // the sizes that one dimension stands for
  PartialShape known_under_ellipsis_ = PartialShape::unknown();
};

// The axes of both, counted from 0; each pair must agree in size.
void check_axes(const Tensor& a, const Tensor& b, std::vector<int64_t>& axes_a, std::vector<int64_t>& axes_b) {
  const PartialShape sa = a.partial_shape();
  const PartialShape sb = b.partial_shape();
  if (!sa.has_rank() || !sb.has_rank()) {
    throw make_error(Code::unimplemented,
                     "[Tensordot] of tensors of unknown rank: tell it with ensure_shape(x, {{-1, ...}})");
  }
  if (axes_a.size() != axes_b.size()) {
    throw invalid_argument("[Tensordot] {} axes of a but {} of b", axes_a.size(), axes_b.size());
  }
  for (size_t i = 0; i < axes_a.size(); ++i) {
    axes_a[i] = normalize_axis(axes_a[i], sa.rank(), "[Tensordot] axis of a");
    axes_b[i] = normalize_axis(axes_b[i], sb.rank(), "[Tensordot] axis of b");
    for (size_t j = 0; j < i; ++j) {
      if (axes_a[i] == axes_a[j] || axes_b[i] == axes_b[j])
        throw invalid_argument("[Tensordot] an axis is named twice");
    }
    const int64_t na = sa[static_cast<int>(axes_a[i])];
    const int64_t nb = sb[static_cast<int>(axes_b[i])];
    if (na >= 0 && nb >= 0 && na != nb) {
      throw invalid_argument("[Tensordot] axis {} of a {} and axis {} of b {} differ in size", axes_a[i], sa.str(),
                             axes_b[i], sb.str());
    }
  }
}

}  // namespace

Tensor einsum(std::string_view equation, const OperandList& operands) {
  return composed(operands.where(), [&] { return Einsum(equation, operands).run(); });
}

Tensor tensordot(const Operand& a, const Operand& b, const std::vector<int64_t>& axes_a,
                 const std::vector<int64_t>& axes_b) {
  return composed(a.where(), [&]() -> Tensor {
    const Tensor x = a.value();
    const Tensor y = b.value();
    std::vector<int64_t> at_a = axes_a;
    std::vector<int64_t> at_b = axes_b;
    check_axes(x, y, at_a, at_b);
    const PartialShape sx = x.partial_shape();
    const PartialShape sy = y.partial_shape();
    LabelSizes sizes;
    Labels of_a(static_cast<size_t>(sx.rank()));
    Labels of_b(static_cast<size_t>(sy.rank()));
    Labels out;
    for (int i = 0; i < sy.rank(); ++i) {
      of_b[static_cast<size_t>(i)] = sx.rank() + i;
      sizes.set(sx.rank() + i, sy[i], y, i);
    }
    for (int i = 0; i < sx.rank(); ++i) {
      of_a[static_cast<size_t>(i)] = i;
      sizes.set(i, sx[i], x, i);
      const auto pair = static_cast<size_t>(std::find(at_a.begin(), at_a.end(), i) - at_a.begin());
      if (pair == at_a.size()) {
        out.push_back(i);
        continue;
      }
      of_b[static_cast<size_t>(at_b[pair])] = i;
      if (sx[i] < 0) sizes.set(i, sy[static_cast<int>(at_b[pair])], x, i);
    }
    for (int l : of_b) {
      if (l >= sx.rank()) out.push_back(l);
    }
    return reordered(contracted({x, of_a}, {y, of_b}, out, sizes), out);
  });
}

Tensor tensordot(const Operand& a, const Operand& b, int64_t axes) {
  return composed(a.where(), [&]() -> Tensor {
    const PartialShape sa = a.value().partial_shape();
    const PartialShape sb = b.value().partial_shape();
    if (axes < 0 || (sa.has_rank() && axes > sa.rank()) || (sb.has_rank() && axes > sb.rank())) {
      throw invalid_argument("[Tensordot] cannot sum over {} axes of {} and {}", axes, sa.str(), sb.str());
    }
    std::vector<int64_t> last;
    std::vector<int64_t> first;
    for (int64_t i = 0; i < axes; ++i) {
      last.push_back(i - axes);
      first.push_back(i);
    }
    return tensordot(a, b, last, first);
  });
}

}  // namespace runnel
