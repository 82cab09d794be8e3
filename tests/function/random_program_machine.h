#pragma once

// Runs a random program: eagerly, or traced in one of several ways.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runnel/function/traced_blocks.h"
#include "tests/function/random_program_ops.h"

namespace runnel::random_program {

// Mistakes that a test of the test asks for.
enum class Fault { none, last_bit, lost_write, wrong_arm, extra_iteration, lost_gradient };

enum class Way {
  eager,
  traced,          // the tapes inside the function
  blocks,          // so too, with IF and WHILE
  unknown_shapes,  // so too, by a signature without dimensions
  tape_outside,    // tapes around calls of the function
  inner_traced,    // the main block eagerly, the functions it calls traced
};

// What a program gave: per call its results and derivatives, and the variables in the end.
struct Outcome {
  std::vector<Tensors> results;
  std::vector<Tensors> derivatives;
  Tensors variables;
  std::string error;
};

class Machine {
 public:
  Machine(const Program& program, Way way, Fault fault = Fault::none, const PlanOptions& plan = {})
      : program_(program), way_(way), fault_(fault) {
    for (const Tensor& t : program.variables) variables_.emplace_back(t);
    for (const Block& block : program.functions) {
      auto body = [this, &block](const Tensors& args) {
        Tensors values;
        return run(block, values, args);
      };
      if (way == Way::eager) {
        functions_.emplace_back(body);
      } else {
        functions_.emplace_back(function(body, {.plan = plan}));
      }
    }
    auto main = [this](const Tensors& args) { return with_derivatives(args, [&] { return forward(args); }); };
    if (way == Way::traced || way == Way::blocks) main_ = function(main, {.plan = plan});
    if (way == Way::unknown_shapes) {
      FunctionOptions options{.plan = plan};
      for (const Tensor& t : program.calls[0]) {
        options.input_signature.push_back(
            {PartialShape(Dims(static_cast<size_t>(t.rank()), kUnknownDim)), t.dtype(), {}});
      }
      main_ = function(main, options);
    }
    if (way == Way::tape_outside) {
      auto inner = function([this](const Tensors& args) { return forward(args); }, {.plan = plan});
      main_ = [this, inner](const Tensors& args) { return with_derivatives(args, [&] { return inner(args); }); };
    }
    if (!main_) main_ = main;
  }

  // All calls, from the variables' first values on.
  Outcome run() {
    Outcome o;
    try {
      for (size_t k = 0; k < variables_.size(); ++k) variables_[k].assign(program_.variables[k]);
      for (const Tensors& args : program_.calls) {
        Tensors all = main_(args);
        const auto middle = all.begin() + static_cast<int64_t>(program_.main.results.size());
        o.results.emplace_back(all.begin(), middle);
        o.derivatives.emplace_back(middle, all.end());
      }
      for (const Variable& v : variables_) o.variables.push_back(v.value());
    } catch (const std::exception& e) {
      o.error = e.what();
    }
    return o;
  }

  // One instruction that is no control flow; the generator tries them so.
  Tensors simple(const Instr& i, const Tensors& x) {
    if (i.op == "read") return {variables_[static_cast<size_t>(i.target)].value()};
    if (i.op.starts_with("assign")) {
      if (fault_ == Fault::lost_write) return {};
      const Variable& v = variables_[static_cast<size_t>(i.target)];
      if (i.op == "assign") v.assign(x[0]);
      if (i.op == "assign_add") v.assign_add(x[0]);
      if (i.op == "assign_sub") v.assign_sub(x[0]);
      return {};
    }
    Tensors out = find_op(i.op)->run(i, x);
    if (fault_ == Fault::last_bit && i.op == "tanh") out[0] = nextafter(out[0], zeros_like(out[0]));
    return out;
  }

  Tensors run(const Block& block, Tensors values, const Tensors& args) {
    for (size_t k = 0; k < args.size(); ++k) set(values, block.params[k], args[k]);
    for (const Instr& i : block.body) {
      const Tensors x = get(values, i.in);
      const Tensors out = step(i, x, values);
      for (size_t k = 0; k < i.out.size(); ++k) set(values, i.out[k], out[k]);
    }
    return get(values, block.results);
  }

  static Tensors get(const Tensors& values, const std::vector<int>& ids) {
    Tensors out;
    for (const int id : ids) out.push_back(values[static_cast<size_t>(id)]);
    return out;
  }
  static void set(Tensors& values, int id, const Tensor& t) {
    if (values.size() <= static_cast<size_t>(id)) values.resize(static_cast<size_t>(id) + 1);
    values[static_cast<size_t>(id)] = t;
  }

 private:
  Tensors step(const Instr& i, const Tensors& x, const Tensors& values) {
    const auto arm = [&](size_t k) { return [&, k] { return run(i.blocks[k], values, {}); }; };
    if (i.op == "call") return functions_[static_cast<size_t>(i.target)](x);
    if (i.op == "cond") {
      if (way_ == Way::blocks) return block_cond(i, x[0], values);
      const bool wrong = fault_ == Fault::wrong_arm;
      return cond(x[0], arm(wrong ? 1 : 0), arm(wrong ? 0 : 1));
    }
    if (i.op == "switch") {
      std::vector<std::function<Tensors()>> arms;
      for (size_t k = 0; k < i.blocks.size(); ++k) arms.emplace_back(arm(k));
      return switch_case(x[0], arms);
    }
    if (i.op == "while") return loop(i, x, values);
    return simple(i, x);
  }

  Tensors block_cond(const Instr& i, const Tensor& predicate, const Tensors& values) {
    Tensors out(i.out.size());
    IF(predicate) {
      const Tensors given = run(i.blocks[0], values, {});
      for (size_t k = 0; k < out.size(); ++k) out[k] = given[k];
    }
    else {
      const Tensors given = run(i.blocks[1], values, {});
      for (size_t k = 0; k < out.size(); ++k) out[k] = given[k];
    }
    return out;
  }

  // Input 0 is how often at most; the others are the state that the body changes.
  Tensors loop(const Instr& i, const Tensors& x, const Tensors& values) {
    Tensors state = x;
    state[0] = Tensor(fault_ == Fault::extra_iteration ? -1 : 0);
    const auto more = [&](const Tensors& s) {
      const Tensor in_bound = s[0] < x[0];
      if (i.ints[0] % 2 == 0) return in_bound;
      return logical_and(in_bound, reduce_sum(cast(s[1], DType::float32)) < i.number + 3);
    };
    const auto body = [&](const Tensors& s) {
      Tensors next = run(i.blocks[0], values, s);
      next.insert(next.begin(), s[0] + 1);
      return next;
    };
    if (way_ == Way::blocks) {
      WHILE(more(state)) {
        const Tensors next = body(state);
        for (size_t k = 0; k < next.size(); ++k) state[k] = next[k];
      }
    } else {
      state = while_loop(more, body, state);
    }
    return {state.begin() + 1, state.end()};
  }

  Tensors forward(const Tensors& args) { return run(program_.main, {}, args); }

  // The results, and the derivatives of a sum of them by the float arguments and variables.
  template <class F>
  Tensors with_derivatives(const Tensors& args, const F& results) {
    if (program_.order == 0) return results();
    std::vector<GradSource> sources;
    std::optional<GradientTape> outer;
    if (program_.order > 1) outer.emplace();
    GradientTape tape;
    for (const Tensor& t : args) {
      if (!is_float(t.dtype())) continue;
      sources.emplace_back(t);
      tape.watch(t);
      if (outer) outer->watch(t);
    }
    std::vector<Variable> floats;
    for (const Variable& v : variables_) {
      if (is_float(v.dtype())) floats.push_back(v);
    }
    for (const Variable& v : floats) sources.emplace_back(v);
    Tensors all = results();
    Tensor loss = cast(Tensor(0.f), program_.dtype);
    for (size_t k = 0; k < all.size(); ++k) {
      if (!is_float(all[k].dtype())) continue;
      loss = loss + reduce_sum(cast(all[k], program_.dtype)) * (1 + 0.5 * static_cast<double>(k));
    }
    const auto tensors = [&](std::vector<Gradient> g) {
      Tensors out;
      for (const Gradient& one : g) out.push_back(one.value());
      if (fault_ == Fault::lost_gradient) out[0] = zeros_like(out[0]);
      return out;
    };
    Tensors first = tensors(tape.gradient({loss}, sources, {}, UnconnectedGradients::zero));
    all.insert(all.end(), first.begin(), first.end());
    if (outer) {
      Tensor sum = cast(Tensor(0.f), program_.dtype);
      for (const Tensor& g : first) sum = sum + reduce_sum(cast(sin(g), program_.dtype));
      Tensors second = tensors(outer->gradient({sum}, sources, {}, UnconnectedGradients::zero));
      all.insert(all.end(), second.begin(), second.end());
    }
    if (program_.train) {
      for (size_t k = 0; k < floats.size(); ++k) floats[k].assign_sub(first[first.size() - floats.size() + k] * 0.125);
    }
    return all;
  }
  static bool is_float(DType t) { return t == DType::float32 || t == DType::float64; }

  const Program& program_;
  Way way_;
  Fault fault_;
  std::vector<Variable> variables_;
  std::vector<std::function<Tensors(const Tensors&)>> functions_;
  std::function<Tensors(const Tensors&)> main_;
};

}  // namespace runnel::random_program
