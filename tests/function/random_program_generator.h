#pragma once

// Random programs. Every instruction is tried eagerly while the program is written, which gives the dtypes and shapes
// of its results; what throws is no part of the program.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tests/function/random_program_machine.h"

namespace runnel::random_program {

// Small and the same everywhere, unlike the distributions of the standard library.
class Dice {
 public:
  // Scattered, so that the streams of neighbouring seeds have nothing in common.
  explicit Dice(uint64_t seed) : state_(seed) { state_ = next() ^ 0x5851F42D4C957F2Du; }
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[static_cast<size_t>(below(static_cast<int64_t>(all.size())))];
  }

 private:
  uint64_t state_;
};

class Generator {
 public:
  // The first `length` instructions of the program of this seed.
  static Program make(uint64_t seed, int length = 1000) {
    Generator g(seed);
    g.write(length);
    return std::move(g.p_);
  }

 private:
  explicit Generator(uint64_t seed) : dice_(seed), ends_(~seed) { p_.seed = seed; }

  using Ids = std::vector<int>;

  void write(int length) {
    p_.large = dice_.chance(12);
    p_.order = dice_.chance(40) ? (!p_.large && dice_.chance(20) ? 2 : 1) : 0;
    // Derivatives of branches are added up in another order than eagerly: only tame numbers can be compared then.
    may_branch_ = p_.order == 0 || dice_.chance(60);
    p_.tame = p_.order > 0 && (may_branch_ || p_.order > 1);
    p_.wild = !p_.tame && dice_.chance(50);
    smooth_ = dice_.chance(15);
    may_branch_ = may_branch_ && !smooth_;
    p_.dtype = dice_.chance(p_.tame ? 75 : 15) ? DType::float64 : DType::float32;
    const int64_t rows = p_.large ? 200 + dice_.below(20) : 1 + dice_.below(5);
    const int64_t columns = p_.large ? 201 + dice_.below(20) : 1 + dice_.below(6);
    most_elements_ = p_.large ? 200000 : 2000;
    const std::vector<Shape> shapes{{rows, columns}, {rows, columns}, {columns}, {rows, 1}, {}};
    for (int call = 0; call < 3; ++call) {
      Tensors args;
      for (const Shape& s : shapes) args.push_back(call == 2 ? p_.calls[0][args.size()] : floats(s));
      args.push_back(call == 2 ? p_.calls[0].back() : integers({rows}));
      p_.calls.push_back(args);
    }
    p_.variables = {floats({rows, columns}), floats({}), integers({})};
    Machine machine(p_, Way::eager);
    machine_ = &machine;

    Ids visible;
    for (const Tensor& t : p_.calls[0]) p_.main.params.push_back(add(t, visible));
    const int64_t wanted = 4 + dice_.below(14);
    fill(p_.main, visible, static_cast<int>(std::min<int64_t>(wanted, length)), 0);
    const auto n = static_cast<int64_t>(visible.size());
    for (int k = 0; k < 3; ++k) p_.main.results.push_back(visible[static_cast<size_t>(ends_.below(n))]);
    for (int64_t k = n; k-- > std::max<int64_t>(n - 3, 0);) p_.main.results.push_back(visible[static_cast<size_t>(k)]);
    p_.train = p_.order == 1 && !p_.branches && p_.seed % 2 == 0;
  }

  Tensor floats(const Shape& shape) {
    static const std::vector<double> special{0.,
                                             -0.,
                                             1.,
                                             -1.,
                                             std::numeric_limits<double>::infinity(),
                                             -std::numeric_limits<double>::infinity(),
                                             std::nan(""),
                                             1e30,
                                             1e-40};
    std::vector<double> v(static_cast<size_t>(shape.num_elements()));
    for (double& x : v) x = static_cast<double>(dice_.below(4001) - 2000) / 1024.;
    if (p_.wild) {
      for (double& x : v) {
        if (dice_.chance(8)) x = dice_.of(special);
      }
    }
    return cast(Tensor::of<double>(v, shape), p_.dtype);
  }
  Tensor integers(const Shape& shape) {
    std::vector<int32_t> v(static_cast<size_t>(shape.num_elements()));
    for (int32_t& x : v) x = static_cast<int32_t>(dice_.below(15) - 5);
    return Tensor::of<int32_t>(v, shape);
  }

  int add(const Tensor& t, Ids& visible) {
    const int id = static_cast<int>(values_.size());
    values_.push_back(t);
    visible.push_back(id);
    return id;
  }
  const Tensor& value(int id) const { return values_[static_cast<size_t>(id)]; }

  bool fits(const Tensor& t, char letter) const {
    const bool is_float = t.dtype() == DType::float32 || t.dtype() == DType::float64;
    const bool is_int = t.dtype() == DType::int32;
    if (letter == 'a') return true;
    if (letter == 'b') return t.dtype() == DType::bool_;
    return letter == 'f' ? is_float : letter == 'i' ? is_int : is_float || is_int;
  }
  // A value of this kind, rather a late one.
  std::optional<int> choose(const Ids& visible, char letter) {
    Ids good;
    for (const int id : visible) {
      if (fits(value(id), letter)) good.push_back(id);
    }
    if (good.empty()) return std::nullopt;
    const auto n = static_cast<int64_t>(good.size());
    return good[static_cast<size_t>(dice_.chance(50) ? n - 1 - dice_.below(std::min<int64_t>(n, 3)) : dice_.below(n))];
  }
  bool same_type(int a, int b) const {
    return value(a).dtype() == value(b).dtype() && value(a).shape() == value(b).shape();
  }
  // The last value of that type, mostly.
  int choose_like(int like, const Ids& visible) {
    Ids good;
    for (const int id : visible) {
      if (same_type(id, like)) good.push_back(id);
    }
    return dice_.chance(70) ? good.back() : dice_.of(good);
  }

  void fill(Block& block, Ids& visible, int count, int depth) {
    for (int done = 0, tries = 0; done < count && tries < 40 * count; ++tries)
      done += instruction(block, visible, depth);
  }

  Instr draw(const char* op) {
    static const std::vector<double> numbers{0, 1, -1, 2, 0.5, -0., 3};
    Instr i;
    i.op = op;
    for (int k = 0; k < 6; ++k) i.ints.push_back(dice_.below(1000));
    i.number = dice_.of(numbers);
    return i;
  }

  bool instruction(Block& block, Ids& visible, int depth) {
    const int64_t roll = dice_.below(100);
    if (roll < 5) return again(block, visible);
    if (roll < 15) return variable(block, visible);
    if (depth < 3 && roll < 27) {
      if (roll >= 24) return call(block, visible, depth);
      if (!may_branch_) return false;
      return roll < 18   ? branch(block, visible, depth, 2)
             : roll < 20 ? branch(block, visible, depth, 0)
                         : loop(block, visible, depth);
    }
    const ProgramOp& op = dice_.of(program_ops());
    if ((p_.tame && !(op.flags & ProgramOp::safe)) || (p_.large && (op.flags & ProgramOp::small))) return false;
    if ((smooth_ && (op.flags & ProgramOp::jumps)) || (!may_branch_ && (op.flags & ProgramOp::loops))) return false;
    Instr i = draw(op.name);
    for (const char* c = op.takes; *c; ++c) {
      const auto id = choose(visible, *c);
      if (!id) return false;
      i.in.push_back(*id);
    }
    if (!emit(block, visible, std::move(i))) return false;
    p_.branches = p_.branches || (op.flags & ProgramOp::loops);
    p_.jumps = p_.jumps || (op.flags & ProgramOp::jumps);
    return true;
  }

  // Tries an instruction; what it gives becomes visible.
  bool emit(Block& block, Ids& visible, Instr i) {
    const Tensors x = Machine::get(values_, i.in);
    i.shapes.clear();
    for (const Tensor& t : x) i.shapes.emplace_back(t.shape().begin(), t.shape().end());
    Tensors out;
    try {
      out = machine_->simple(i, x);
    } catch (const std::exception&) {
      return false;
    }
    for (const Tensor& t : out) {
      if (t.num_elements() > most_elements_ || t.num_elements() == 0 || t.rank() > 5) return false;
    }
    i.out.clear();
    for (const Tensor& t : out) i.out.push_back(add(t, visible));
    block.body.push_back(std::move(i));
    return true;
  }

  // Something once more: the same expression, or the same read after a write.
  bool again(Block& block, Ids& visible) {
    if (block.body.empty()) return false;
    const Instr i = dice_.of(block.body);
    if (!i.blocks.empty() || i.op == "call") return false;
    return emit(block, visible, i);
  }

  bool variable(Block& block, Ids& visible) {
    static const std::vector<const char*> ops{"read", "read", "assign", "assign_add", "assign_sub"};
    Instr i = draw(dice_.of(ops));
    i.target = static_cast<int>(dice_.below(static_cast<int64_t>(p_.variables.size())));
    if (i.op != "read") {
      const auto id = choose(visible, 'n');
      if (!id) return false;
      i.in = {*id};
    }
    return emit(block, visible, std::move(i));
  }

  // An int32 scalar in [0, n), of what is there.
  std::optional<int> small_number(Block& block, Ids& visible, int64_t n) {
    auto id = choose(visible, 'i');
    Instr i;
    if (!id) {
      id = choose(visible, 'f');
      if (!id) return std::nullopt;
      i = draw("to_int32");
      i.in = {*id};
      if (!emit(block, visible, i)) return std::nullopt;
      id = visible.back();
    }
    i = draw("remainder_of_sum");
    i.in = {*id};
    i.ints[0] = n - 1;
    if (!emit(block, visible, i)) return std::nullopt;
    return visible.back();
  }

  // Values whose types the arms give back, or that a loop changes.
  Ids some_values(const Ids& visible) {
    Ids ids;
    for (int k = 0; k < 1 + dice_.below(2); ++k) {
      if (const auto id = choose(visible, dice_.chance(80) ? 'f' : 'a')) ids.push_back(*id);
    }
    return ids;
  }

  void finish(Block& inner, const Ids& seen, const Ids& like) {
    for (const int id : like) inner.results.push_back(choose_like(id, seen));
  }

  bool branch(Block& block, Ids& visible, int depth, int64_t arms) {
    p_.branches = p_.jumps = true;
    const bool is_cond = arms == 2;
    if (!is_cond) arms = 2 + dice_.below(3);
    auto at = small_number(block, visible, is_cond ? 2 : arms + 1);
    if (!at) return false;
    if (is_cond) {
      Instr c = draw("to_bool");
      c.in = {*at};
      if (!emit(block, visible, c)) return false;
      at = visible.back();
    }
    const Ids like = some_values(visible);
    if (like.empty()) return false;
    Instr i = draw(is_cond ? "cond" : "switch");
    i.in = {*at};
    for (int64_t k = 0; k < arms; ++k) {
      Block arm;
      Ids seen = visible;
      fill(arm, seen, static_cast<int>(dice_.below(5)), depth + 1);
      finish(arm, seen, like);
      i.blocks.push_back(std::move(arm));
    }
    for (const int id : i.blocks[0].results) i.out.push_back(add(value(id), visible));
    block.body.push_back(std::move(i));
    return true;
  }

  bool loop(Block& block, Ids& visible, int depth) {
    p_.branches = p_.jumps = true;
    const auto bound = small_number(block, visible, 4);
    const Ids state = some_values(visible);
    if (!bound || state.empty()) return false;
    Instr i = draw("while");
    i.in = {*bound};
    i.in.insert(i.in.end(), state.begin(), state.end());
    Block body;
    Ids seen = visible;
    body.params.push_back(add(Tensor(0), seen));
    for (const int id : state) body.params.push_back(add(value(id), seen));
    fill(body, seen, static_cast<int>(1 + dice_.below(4)), depth + 1);
    finish(body, seen, state);
    i.out.clear();
    for (const int id : body.results) i.out.push_back(add(value(id), visible));
    i.blocks.push_back(std::move(body));
    block.body.push_back(std::move(i));
    return true;
  }

  bool call(Block& block, Ids& visible, int depth) {
    Instr i = draw("call");
    // One that exists already, where values of its types do.
    const auto known = static_cast<int64_t>(p_.functions.size());
    if (known > 0 && dice_.chance(40)) {
      i.target = static_cast<int>(dice_.below(known));
      const Block& f = p_.functions[static_cast<size_t>(i.target)];
      if (f.results.empty()) return false;  // is being written: it would call itself
      for (const int param : f.params) {
        Ids good;
        for (const int id : visible) {
          if (same_type(id, param)) good.push_back(id);
        }
        if (good.empty()) return false;
        i.in.push_back(dice_.of(good));
      }
    } else {
      i.target = static_cast<int>(known);
      p_.functions.emplace_back();
      Block f;
      Ids seen;
      i.in = some_values(visible);
      for (const int id : some_values(visible)) i.in.push_back(id);
      for (const int id : i.in) f.params.push_back(add(value(id), seen));
      fill(f, seen, static_cast<int>(1 + dice_.below(6)), depth + 1);
      f.results = {seen.back(), dice_.of(seen)};
      p_.functions[static_cast<size_t>(i.target)] = std::move(f);
    }
    for (const int id : p_.functions[static_cast<size_t>(i.target)].results) i.out.push_back(add(value(id), visible));
    block.body.push_back(std::move(i));
    return true;
  }

  Dice dice_;
  Dice ends_;  // of what is decided after the instructions
  Program p_;
  bool may_branch_ = true;
  bool smooth_ = false;
  int64_t most_elements_ = 0;
  Tensors values_;  // by number: what the instructions gave when they were tried
  Machine* machine_ = nullptr;
};

}  // namespace runnel::random_program
