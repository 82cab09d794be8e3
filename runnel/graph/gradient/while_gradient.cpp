// The derivative of a loop: a loop that walks the iterations backwards over what the forward loop kept in lists.
#include "runnel/graph/gradient/while_gradient.h"

#include <algorithm>

#include "runnel/autodiff/record.h"
#include "runnel/base/format.h"
#include "runnel/graph/call.h"
#include "runnel/graph/gradient/branch_gradient.h"
#include "runnel/graph/gradient/gradient.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/tensor_list.h"

namespace runnel {
namespace {

struct Loop {
  std::shared_ptr<Graph> graph;
  Node* node;

  const WhileAttrs& attrs() const { return node->attrs_as<WhileAttrs>(); }
  Tensor input(size_t i) const { return symbolic(graph, node->inputs[i]); }
  Tensor output(int i) const { return symbolic(graph, {node, i}); }
};

PartialShape shape_of(const GraphFunction& f, const Derivative::Saved& s) {
  const auto k = static_cast<size_t>(s.index);
  if (s.from == Derivative::From::input) return f.graph().inputs()[k]->shape();
  const NodeOutput& out = f.graph().outputs()[k];
  return out.node->shape(out.index);
}
DType dtype_of_saved(const GraphFunction& f, const Derivative::Saved& s) {
  const auto k = static_cast<size_t>(s.index);
  if (s.from == Derivative::From::input) return f.graph().inputs()[k]->dtype();
  const NodeOutput& out = f.graph().outputs()[k];
  return out.node->dtype(out.index);
}

// Of a list of the shapes that a tensor has.
Tensor shapes_in_list(const PartialShape& of) { return list_ops::element_shape_tensor(PartialShape{of.rank()}); }

// Lets the loop count its iterations and keep what the derivative of its body, as it is now, needs.
const WhileRecord& extend(const Loop& loop) {
  const WhileAttrs before = loop.attrs();
  const auto num_state = static_cast<size_t>(before.num_state);
  const GraphFunctionPtr body = function_ptr(before.body)->extended(1);
  WhileRecord record;
  record.body = body;
  record.num_state = static_cast<int>(num_state);
  record.num_captures = static_cast<int>(loop.node->inputs.size() - num_state);
  record.count = static_cast<int>(num_state);
  // As backward() asks: gradients come in by the state alone.
  std::vector<bool> all_dy(body->graph().outputs().size(), false);
  for (size_t i = 0; i < num_state; ++i) all_dy[i] = has_gradient(body->graph().inputs()[i]->dtype());
  const std::vector<bool> all_inputs(body->graph().inputs().size(), true);
  const Derivative& derivative = body->derivative(all_dy, all_inputs);
  for (const Derivative::Saved& s : derivative.saved) {
    const bool varies =
        s.from == Derivative::From::output || (s.from == Derivative::From::input && s.index < record.num_state);
    if (varies) record.kept.push_back(s);
  }
  for (size_t i = 0; i < num_state; ++i) {
    const Node& input = *body->graph().inputs()[i];
    const bool unread = all_dy[i] && derivative.result[i] == Derivative::Kind::none;
    if (unread && is_plain(input.dtype()) && !input.shape().is_static()) record.shapes.push_back(static_cast<int>(i));
  }

  Tracer editor(loop.graph, nullptr);
  editor.open();
  Tensors state;
  Tensors captures;
  for (size_t i = 0; i < loop.node->inputs.size(); ++i) (i < num_state ? state : captures).push_back(loop.input(i));
  state.emplace_back(0);
  for (const Derivative::Saved& s : record.kept) {
    state.push_back(list_ops::empty(list_ops::element_shape_tensor(shape_of(*body, s)), dtype_of_saved(*body, s)));
  }
  for (const int i : record.shapes) {
    state.push_back(
        list_ops::empty(shapes_in_list(body->graph().inputs()[static_cast<size_t>(i)]->shape()), DType::int32));
  }
  const auto whole = [&](const Tensors& s) {
    Tensors in(s.begin(), s.begin() + static_cast<ptrdiff_t>(num_state));
    in.insert(in.end(), captures.begin(), captures.end());
    return in;
  };
  WhileOptions options;
  for (size_t i = 0; i < num_state; ++i)
    options.shape_invariants.push_back(stated_shape(before.output_shapes, static_cast<int>(i)));
  for (size_t i = num_state; i < state.size(); ++i) options.shape_invariants.emplace_back();
  add_while([&](const Tensors& s) { return call_function(function_ptr(before.cond), whole(s))[0]; },
            [&](const Tensors& s) {
              const Tensors in = whole(s);
              const Tensors out = call_function(body, in);
              Tensors next(out.begin(), out.begin() + static_cast<ptrdiff_t>(num_state));
              next.push_back(s[num_state] + 1);
              for (size_t k = 0; k < record.kept.size(); ++k) {
                const Derivative::Saved& kept = record.kept[k];
                const auto at = static_cast<size_t>(kept.index);
                next.push_back(
                    list_ops::push_back(s[num_state + 1 + k], kept.from == Derivative::From::input ? in[at] : out[at]));
              }
              for (const int i : record.shapes) {
                next.push_back(list_ops::push_back(s[next.size()], shape(in[static_cast<size_t>(i)])));
              }
              return next;
            },
            state, options, loop.node->where, captures);
  editor.close();
  // The loop itself becomes the new one; what it starts from was added after it, so the graph must be sorted.
  const std::unique_ptr<Node> made = loop.graph->pop_back();
  auto attrs = std::make_shared<WhileAttrs>(made->attrs_as<WhileAttrs>());
  attrs->records = before.records;
  attrs->records.push_back(std::move(record));
  loop.node->op = made->op;
  loop.node->inputs = made->inputs;
  loop.node->dtypes = made->dtypes;
  loop.node->shapes = made->shapes;
  loop.node->values.resize(made->dtypes.size());
  loop.node->inferred = made->inferred;
  loop.node->attrs = std::move(attrs);
  return loop.attrs().records.back();
}

struct LoopGradient {
  Gradients state;     // of the first num_state inputs of the record
  Gradients captures;  // of its captures
};

// `outputs`: the state after the loop, as far as the record needs it.
LoopGradient backward(const Loop& loop, const WhileRecord& record, const std::vector<Gradient>& dy,
                      const Tensors& outputs, const Tensors& captures, const std::vector<bool>& captures_needed) {
  const auto num_state = static_cast<size_t>(record.num_state);
  const GraphFunction& body = *record.body;
  const std::vector<Derivative::Saved> kept = record.kept;
  const std::vector<int> shapes = record.shapes;
  const GraphFunctionPtr body_ptr = record.body;
  std::vector<size_t> moving;  // state with a derivative
  for (size_t i = 0; i < num_state; ++i) {
    const DType t = body.graph().inputs()[i]->dtype();
    if (has_gradient(t)) moving.push_back(i);
  }
  std::vector<size_t> fixed;
  for (size_t k = 0; k < captures.size(); ++k) {
    if (captures_needed[k]) fixed.push_back(k);
  }
  // All, as when the loop was extended: what nobody uses is dropped.
  const std::vector<bool> needed(body.graph().inputs().size(), true);

  const auto count = static_cast<size_t>(record.count);
  Tensors state(outputs.begin() + static_cast<ptrdiff_t>(count),
                outputs.begin() + static_cast<ptrdiff_t>(count + 1 + kept.size() + shapes.size()));
  const size_t first_moving = state.size();
  for (const size_t i : moving) {
    state.push_back(dy[i].defined() ? dy[i].value() : zeros_like(outputs[i]));
  }
  const size_t first_fixed = state.size();
  for (const size_t k : fixed) state.push_back(zero_gradient(captures[k]));

  const Tensors out = add_while(
      [](const Tensors& s) { return s[0] > 0; },
      [&](const Tensors& s) {
        Tensors next = s;
        next[0] = s[0] - 1;
        Tensors in(num_state);
        in.insert(in.end(), captures.begin(), captures.end());
        Tensors result(body.graph().outputs().size());
        for (size_t k = 0; k < captures.size(); ++k) result[num_state + k] = captures[k];  // handed on unchanged
        for (size_t k = 0; k < kept.size(); ++k) {
          const auto popped = list_ops::pop_back(s[1 + k], list_ops::element_shape_tensor(shape_of(body, kept[k])),
                                                 dtype_of_saved(body, kept[k]));
          next[1 + k] = popped.list;
          (kept[k].from == Derivative::From::input ? in : result)[static_cast<size_t>(kept[k].index)] = popped.item;
        }
        // Where there is no gradient: zeros of the shape that the state had before the iteration changed it.
        Tensors none(num_state);
        for (size_t k = 0; k < shapes.size(); ++k) {
          const auto i = static_cast<size_t>(shapes[k]);
          const Node& input = *body.graph().inputs()[i];
          const auto popped = list_ops::pop_back(s[1 + kept.size() + k], shapes_in_list(input.shape()), DType::int32);
          next[1 + kept.size() + k] = popped.list;
          none[i] = zeros(popped.item, input.dtype());
          if (input.shape().has_rank()) none[i] = ensure_shape(none[i], input.shape());
        }
        std::vector<Gradient> d(result.size());
        for (size_t j = 0; j < moving.size(); ++j) d[moving[j]] = s[first_moving + j];
        const Gradients dx = function_gradient(body_ptr, in, result, d, needed);
        for (size_t j = 0; j < moving.size(); ++j) {
          const Gradient& g = dx[moving[j]];
          const Tensor& zero = none[moving[j]];
          next[first_moving + j] = g.defined() ? g.value() : zero.defined() ? zero : zeros_like(s[first_moving + j]);
        }
        for (size_t j = 0; j < fixed.size(); ++j) {
          Gradient sum(s[first_fixed + j]);
          accumulate(sum, dx[num_state + fixed[j]]);
          next[first_fixed + j] = sum.value();
        }
        return next;
      },
      state, {}, loop.node->where);
  LoopGradient result;
  result.state.resize(num_state);
  result.captures.resize(captures.size());
  for (size_t j = 0; j < moving.size(); ++j) result.state[moving[j]] = out[first_moving + j];
  for (size_t j = 0; j < fixed.size(); ++j) result.captures[fixed[j]] = out[first_fixed + j];
  return result;
}

// The record that covers these gradients; the loop is extended where there is none.
WhileRecord record_for(const Loop& loop, const std::vector<Gradient>& dy) {
  size_t last = 0;
  const auto num_state = static_cast<size_t>(loop.attrs().num_state);
  for (size_t i = 0; i < dy.size() && i < num_state; ++i) {
    if (dy[i].defined()) last = i;
  }
  for (const WhileRecord& r : loop.attrs().records) {
    if (last < static_cast<size_t>(r.num_state)) return r;
  }
  return extend(loop);
}

}  // namespace

Gradients while_gradient(const GradCtx& g, const WhileAttrs& then) {
  const NodeSymbol* symbol = node_symbol(g.y(0));
  if (!symbol) throw make_error(Code::unimplemented, kSymbolicOnly);
  const Loop loop{symbol->graph(), symbol->output().node};
  const auto num_state = static_cast<size_t>(then.num_state);  // as it was when the call was recorded
  const auto num_captures = static_cast<size_t>(g.num_inputs()) - num_state;
  std::vector<Gradient> dy;
  for (size_t i = 0; i < num_state; ++i) dy.push_back(g.raw_dy(static_cast<int>(i)));
  Tensors captures;
  std::vector<bool> needed;
  for (size_t k = 0; k < num_captures; ++k) {
    const int at = static_cast<int>(num_state + k);
    captures.push_back(g.x(at));
    needed.push_back(g.needs(at) && is_differentiable(g.x(at).dtype()));
  }
  const WhileRecord record = record_for(loop, dy);
  const auto whole_captures = [loop](Tensors known, const WhileRecord& r) {
    for (auto k = known.size(); k < static_cast<size_t>(r.num_captures); ++k) {
      known.push_back(loop.input(static_cast<size_t>(loop.attrs().num_state) + k));
    }
    return known;
  };
  Tensors outputs;
  for (size_t i = 0; i < static_cast<size_t>(loop.attrs().num_state); ++i) {
    outputs.push_back(i < num_state ? g.y(static_cast<int>(i)) : loop.output(static_cast<int>(i)));
  }
  if (outputs.size() > num_state && num_recording_tapes() > 0) {
    // Tapes outside know the loop without its added state: for them that comes from the inputs in a step of its own.
    Tensors in;
    for (int i = 0; i < g.num_inputs(); ++i) in.push_back(g.x(i));
    const Tensors added(outputs.begin() + static_cast<ptrdiff_t>(num_state), outputs.end());
    record_step(in, added, [=](std::span<const Gradient> d, std::span<const bool> need) {
      std::vector<Gradient> full(num_state);
      full.insert(full.end(), d.begin(), d.end());
      const WhileRecord wider = record_for(loop, full);
      Tensors after = outputs;
      for (auto i = after.size(); i < static_cast<size_t>(loop.attrs().num_state); ++i) {
        after.push_back(loop.output(static_cast<int>(i)));
      }
      std::vector<bool> wants;
      for (size_t k = 0; k < num_captures; ++k) {
        wants.push_back(need[num_state + k] && is_differentiable(captures[k].dtype()));
      }
      wants.resize(static_cast<size_t>(wider.num_captures), false);
      const LoopGradient back = backward(loop, wider, full, after, whole_captures(captures, wider), wants);
      Gradients dx(back.state.begin(), back.state.begin() + static_cast<ptrdiff_t>(num_state));
      dx.insert(dx.end(), back.captures.begin(), back.captures.begin() + static_cast<ptrdiff_t>(num_captures));
      return dx;
    });
  }
  needed.resize(static_cast<size_t>(record.num_captures), false);
  const LoopGradient back = backward(loop, record, dy, outputs, whole_captures(captures, record), needed);
  Gradients dx = back.state;
  dx.resize(num_state);
  dx.insert(dx.end(), back.captures.begin(), back.captures.begin() + static_cast<ptrdiff_t>(num_captures));
  return dx;
}

}  // namespace runnel
