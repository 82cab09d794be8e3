// Einsum as one op, as graphs of TensorFlow have it.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/array.h"
#include "runnel/ops/broadcast_grad.h"
#include "runnel/ops/einsum.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct EinsumAttrs {
  std::string equation;
  static constexpr auto fields() { return field_list(field("equation", &EinsumAttrs::equation, {.required = true})); }
};

// The subscripts of an equation, which the op always spells out in full.
struct Subscripts {
  std::vector<std::string> inputs;
  std::string output;

  explicit Subscripts(std::string text) {
    std::erase_if(text, [](unsigned char c) { return std::isspace(c); });
    const size_t arrow = text.find("->");
    if (arrow == std::string::npos) throw invalid_argument("the equation '{}' has no ->", text);
    output = text.substr(arrow + 2);
    const std::string left = text.substr(0, arrow);
    for (size_t begin = 0;;) {
      const size_t comma = left.find(',', begin);
      inputs.push_back(left.substr(begin, comma - begin));
      if (comma == std::string::npos) return;
      begin = comma + 1;
    }
  }
};

// The equation with a letter in place of every dimension under an ellipsis, so that gradients can name them. Operands
// that have fewer of them get dimensions of size 1.
struct Spelled {
  std::vector<std::string> inputs;
  std::string output;
  std::vector<Tensor> operands;
  std::string all;  // letters in use

  Spelled(const Subscripts& s, const std::vector<Tensor>& given) : operands(given) {
    std::vector<int> covered;
    int most = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      const PartialShape shape = given[i].partial_shape();
      const bool open = s.inputs[i].find('.') != std::string::npos;
      if (open && !shape.has_rank()) {
        throw make_error(Code::unimplemented, "the gradient of '...' needs operands of known rank: see ensure_shape");
      }
      covered.push_back(open ? shape.rank() - static_cast<int>(s.inputs[i].size()) + 3 : 0);
      most = std::max(most, covered.back());
      all += s.inputs[i];
    }
    std::string letters;
    for (char c = 'A'; c <= 'z' && static_cast<int>(letters.size()) < most; ++c) {
      if (std::isalpha(static_cast<unsigned char>(c)) && all.find(c) == std::string::npos) letters += c;
    }
    const auto spell = [&](std::string text) {
      if (const size_t at = text.find("..."); at != std::string::npos) text.replace(at, 3, letters);
      return text;
    };
    for (size_t i = 0; i < given.size(); ++i) {
      inputs.push_back(spell(s.inputs[i]));
      const size_t at = s.inputs[i].find("...");
      for (int k = covered[i]; at != std::string::npos && k < most; ++k) {
        operands[i] = expand_dims(operands[i], static_cast<int>(at));
      }
    }
    output = spell(s.output);
    ellipsis = letters;
  }

  std::string ellipsis;  // the letters that it stands for
};

// The sizes that the ellipsis stands for in all operands together, of which one may spread over those of another.
Tensor sizes_under_ellipsis(const Spelled& s) {
  Tensor all;
  const auto n = static_cast<int64_t>(s.ellipsis.size());
  for (size_t k = 0; k < s.inputs.size(); ++k) {
    const auto at = static_cast<int64_t>(s.inputs[k].find(s.ellipsis));
    if (s.inputs[k].find(s.ellipsis) == std::string::npos) continue;
    const Tensor own = shape(s.operands[k])(slice(at, at + n));
    all = all.defined() ? where(equal(all, 1), own, all) : own;
  }
  return all;
}

// Operand k and its labels as a factor: what spreads under the ellipsis has the full sizes there or, where it is known
// to have the size 1, no label.
std::pair<std::string, Tensor> as_factor(const Spelled& s, size_t k) {
  const Tensor& x = s.operands[k];
  const size_t first = s.ellipsis.empty() ? std::string::npos : s.inputs[k].find(s.ellipsis);
  if (first == std::string::npos) return {s.inputs[k], x};
  const PartialShape known = x.partial_shape();
  const size_t end = first + s.ellipsis.size();
  bool sized = known.has_rank();
  for (size_t d = first; sized && d < end; ++d) sized = known[d] >= 0;
  if (!sized) {
    const Tensor own = shape(x);
    const Tensor full = concat({own(slice(0, static_cast<int64_t>(first))), sizes_under_ellipsis(s),
                                own(slice(static_cast<int64_t>(end), none))},
                               0);
    return {s.inputs[k], broadcast_to(x, full)};
  }
  std::string labels;
  std::vector<int64_t> single;
  for (size_t d = 0; d < s.inputs[k].size(); ++d) {
    if (d >= first && d < end && known[d] == 1) {
      single.push_back(static_cast<int64_t>(d));
    } else {
      labels += s.inputs[k][d];
    }
  }
  return {labels, single.empty() ? x : squeeze(x, Axes(single))};
}

// The gradient of operand i: the others and dy multiplied; labels that only this operand has are spread with ones.
Tensor einsum_gradient(const GradCtx& g, const Spelled& s, size_t i) {
  std::string left = s.output;
  std::vector<Tensor> parts{g.dy()};
  for (size_t k = 0; k < s.inputs.size(); ++k) {
    if (k == i) continue;
    const auto [labels, operand] = as_factor(s, k);
    left += "," + labels;
    parts.push_back(conj(operand));
  }
  const Tensor sizes = shape(s.operands[i]);
  for (size_t d = 0; d < s.inputs[i].size(); ++d) {
    const char label = s.inputs[i][d];
    if (left.find(label) != std::string::npos) continue;
    left += std::string(",") + label;
    parts.push_back(fill(reshape(sizes[static_cast<int>(d)], {1}), ones({}, g.dy().dtype())));
  }
  const Tensor whole = einsum(left + "->" + s.inputs[i], parts);
  return reshape(sum_to_shape_of(whole, s.operands[i]), shape(g.x(static_cast<int>(i))));
}

}  // namespace

void register_einsum(Registry& r) {
  const Tensor a{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}};
  const Tensor b{{1.f, 0.f}, {2.f, 1.f}, {0.f, 3.f}};
  r.define<EinsumAttrs>("Einsum")
      .type("T", floating_or_complex + Types<int32_t, int64_t>{})
      .in_list("inputs", "N")
      .at_least(1)
      .out("output", "T")
      .shape([](InferContext& c, const EinsumAttrs& at) {
        const Subscripts s(at.equation);
        if (static_cast<int>(s.inputs.size()) != c.num_inputs()) {
          throw invalid_argument("the equation '{}' names {} operands, got {}", at.equation, s.inputs.size(),
                                 c.num_inputs());
        }
        // What can be told without computing: the sizes of labels, where no ellipsis broadcasts.
        std::map<char, int64_t> sizes;
        for (int i = 0; i < c.num_inputs(); ++i) {
          const std::string& labels = s.inputs[static_cast<size_t>(i)];
          if (labels.find('.') != std::string::npos) return c.output(PartialShape::unknown());
          if (!c.input(i).has_rank()) continue;
          if (c.input(i).rank() != static_cast<int>(labels.size())) {
            throw invalid_argument("'{}' has {} labels, operand {} has shape {}", labels, labels.size(), i,
                                   c.input(i).str());
          }
          for (int d = 0; d < c.input(i).rank(); ++d) {
            const int64_t size = c.input(i)[d];
            int64_t& known = sizes.try_emplace(labels[static_cast<size_t>(d)], kUnknownDim).first->second;
            if (known >= 0 && size >= 0 && known != size) {
              throw invalid_argument("label '{}' has size {} and, in operand {}, size {}",
                                     labels[static_cast<size_t>(d)], known, i, size);
            }
            if (known < 0) known = size;
          }
        }
        if (s.output.find('.') != std::string::npos) return c.output(PartialShape::unknown());
        Dims dims;
        for (char label : s.output) dims.push_back(sizes.contains(label) ? sizes[label] : kUnknownDim);
        c.output(PartialShape(dims));
      })
      .forwards()
      .cpu([](KernelContext& c, const EinsumAttrs& at) {
        const Unrecorded one_step;
        std::vector<Tensor> operands;
        for (int i = 0; i < c.num_inputs(); ++i) operands.push_back(c.in(i));
        c.forward(0, einsum(at.equation, operands));
      })
      .grad([](const GradCtx& g, const EinsumAttrs& at) {
        std::vector<Tensor> operands;
        for (int i = 0; i < g.num_inputs(); ++i) operands.push_back(g.x(i));
        const Spelled s(Subscripts(at.equation), operands);
        Gradients all;
        for (int i = 0; i < g.num_inputs(); ++i) {
          all.push_back(g.want(i, [&] { return einsum_gradient(g, s, static_cast<size_t>(i)); }));
        }
        return all;
      })
      .doc("Sums of products written with labels, as einsum.")
      .sample({.in = {a, b}, .out = {Tensor{{5.f, 11.f}, {14.f, 23.f}}}}, {.equation = "ij,jk->ik"})
      .sample({.in = {a}, .out = {Tensor{{1.f, 4.f}, {2.f, 5.f}, {3.f, 6.f}}}}, {.equation = "ij->ji"})
      .sample({.in = {a}, .out = {Tensor{6.f, 15.f}}}, {.equation = "ij->i"})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}}, .out = {Tensor(5.f)}}, {.equation = "ii->"})
      .sample({.in = {a, Tensor{1.f, 2.f}}, .out = {Tensor{{1.f, 2.f, 3.f}, {8.f, 10.f, 12.f}}}},
              {.equation = "a...,a->a..."})
      .sample(
          {.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}, Tensor{{2.f, 3.f}}}, .out = {Tensor{8.f, 18.f, 28.f}}},
          {.equation = "...i,...i->..."})
      .sample(
          {.in = {Tensor{{{1.f, 2.f}}}, Tensor{{{1.f}, {2.f}}, {{3.f}, {4.f}}}}, .out = {Tensor{{{5.f}}, {{11.f}}}}},
          {.equation = "...ij,...jk->...ik"})
      .sample({.in = {a, a}, .error = "label 'j' has size 3"}, {.equation = "ij,jk->ik"})
      .sample({.in = {a}, .error = "names 2 operands"}, {.equation = "ij,jk->ik"});
}

}  // namespace runnel
