#pragma once

// The ops that random programs are made of.
#include <algorithm>

#include "tests/function/random_program.h"

namespace runnel::random_program {

struct ProgramOp {
  const char* name;
  // What the inputs are, a letter each: f a float, i an int32, n either, b a bool, a anything.
  const char* takes;
  // safe: no NaN, no infinity, no fast growth, neither in values nor derivatives. jumps: is not continuous.
  // small: not for large values. loops: is a loop where it is traced.
  enum Flags { none = 0, safe = 1, jumps = 2, small = 4, loops = 8 };
  int flags;
  Tensors (*run)(const Instr& instr, const Tensors& x);
};

namespace ops_detail {

inline int64_t pick(const Instr& i, size_t k, int64_t n) { return n > 0 ? i.ints[k] % n : 0; }
inline int rank_of(const Instr& i, size_t k = 0) { return static_cast<int>(i.shapes[k].size()); }
inline int axis_of(const Instr& i) { return static_cast<int>(pick(i, 0, rank_of(i))); }
inline Axes some_axes(const Instr& i) {
  const int64_t a = pick(i, 0, rank_of(i) + 1);
  return a == rank_of(i) ? Axes() : Axes(a);
}
inline Dims64 with_one(Dims64 d, int64_t at) {
  d.insert(d.begin() + at, 1);
  return d;
}
inline Tensors slice_of(const Instr& i, const Tensors& x) {
  Dims64 begin, size;
  for (size_t d = 0; d < i.shapes[0].size(); ++d) {
    const int64_t n = i.shapes[0][d];
    begin.push_back(d < 2 ? pick(i, d, (n + 1) / 2) : 0);
    size.push_back(d < 2 ? n - begin.back() - pick(i, d + 2, (n - begin.back() + 1) / 2) : n);
  }
  return {slice(x[0], begin, size)};
}
inline Tensors pad_of(const Instr& i, const Tensors& x) {
  std::vector<int32_t> p;
  for (size_t d = 0; d < i.shapes[0].size(); ++d) {
    p.push_back(static_cast<int32_t>(pick(i, d % 3, 2)));
    p.push_back(static_cast<int32_t>(pick(i, d % 3 + 1, 3)));
  }
  return {pad(x[0], Tensor::of<int32_t>(p, {rank_of(i), 2}))};
}
inline Tensors gather_of(const Instr& i, const Tensors& x) {
  const int axis = axis_of(i);
  std::vector<int32_t> at;
  for (size_t k = 1; k < 4; ++k) {
    at.push_back(static_cast<int32_t>(pick(i, k, i.shapes[0].at(static_cast<size_t>(axis)))));
  }
  return {gather(x[0], Tensor::of<int32_t>(at), axis)};
}
inline Tensors roll_of(const Instr& i, const Tensors& x) { return {roll(x[0], Axes(pick(i, 1, 5)), Axes(axis_of(i)))}; }
inline Tensors literal_of(const Instr& i, const Tensors& x) {
  std::vector<float> v;
  for (int64_t k = 0; k < i.shapes[0].back(); ++k) v.push_back(static_cast<float>(i.ints[0] % 7 - k) * 0.25f);
  return {cast(Tensor::of<float>(v), x[0].dtype())};
}
inline void require(bool holds) {
  if (!holds) throw Error(Code::invalid_argument, "does not fit");
}
inline int64_t first_dim(const Instr& i, int64_t most) {
  require(rank_of(i) >= 1 && i.shapes[0][0] <= most);
  return i.shapes[0][0];
}

// Writes rows one by one, one of them twice, and reads them while the loop runs and after it.
inline Tensors array_loop(const Instr& i, const Tensors& x) {
  const int64_t n = first_dim(i, 6);
  const TensorArray rows(x[0].dtype(), n, {.element_shape = x[0][0].partial_shape()});
  const auto [k, written, last] =
      while_loop([&](const Tensor& at, const TensorArray&, const Tensor&) { return at < n; },
                 [&](const Tensor& at, const TensorArray& all, const Tensor& acc) {
                   const Tensor row = gather(x[0], at);
                   const TensorArray more = all.write(at, sin(row) + acc * 0.5).write(0, row);
                   return std::tuple{at + 1, more, tanh(more.read(at)) * more.read(0)};
                 },
                 std::tuple{Tensor(0), rows, x[0][0]});
  return {written.stack(), last, written.read(pick(i, 0, n))};
}
// Whole arrays at once.
inline Tensors array_parts(const Instr& i, const Tensors& x) {
  const int64_t n = first_dim(i, 6);
  require(rank_of(i) > 1);
  const TensorArray rows = TensorArray(x[0].dtype(), n).unstack(x[0]);
  const Tensor order = Tensor::of<int32_t>({static_cast<int32_t>(pick(i, 0, n)), static_cast<int32_t>(pick(i, 1, n))});
  std::vector<int32_t> back;
  for (int64_t k = 0; k < n; ++k) back.push_back(static_cast<int32_t>(n - 1 - k));
  const TensorArray turned = TensorArray(x[0].dtype(), n).scatter(Tensor::of<int32_t>(back), tanh(rows.stack()));
  return {rows.gather(order), turned.concat(), turned.read(0) + rows.read(n - 1)};
}

}  // namespace ops_detail

inline const std::vector<ProgramOp>& program_ops() {
  using namespace ops_detail;
  using I = const Instr&;
  using X = const Tensors&;
  constexpr int kSafe = ProgramOp::safe;
  constexpr int kJumps = ProgramOp::jumps;
  constexpr int kSmall = ProgramOp::small;
  constexpr int kLoops = ProgramOp::loops;
  static const std::vector<ProgramOp> ops{
      // elementwise, of one
      {"negative", "n", kSafe, [](I, X x) -> Tensors { return {-x[0]}; }},
      {"abs", "n", kSafe, [](I, X x) -> Tensors { return {abs(x[0])}; }},
      {"square", "n", 0, [](I, X x) -> Tensors { return {square(x[0])}; }},
      {"sign", "n", kSafe | kJumps, [](I, X x) -> Tensors { return {sign(x[0])}; }},
      {"exp", "f", 0, [](I, X x) -> Tensors { return {exp(x[0])}; }},
      {"expm1", "f", 0, [](I, X x) -> Tensors { return {expm1(x[0])}; }},
      {"log", "f", 0, [](I, X x) -> Tensors { return {log(x[0])}; }},
      {"log1p", "f", 0, [](I, X x) -> Tensors { return {log1p(x[0])}; }},
      {"sqrt", "f", 0, [](I, X x) -> Tensors { return {sqrt(x[0])}; }},
      {"rsqrt", "f", 0, [](I, X x) -> Tensors { return {rsqrt(x[0])}; }},
      {"reciprocal", "f", 0, [](I, X x) -> Tensors { return {reciprocal(x[0])}; }},
      {"sin", "f", kSafe, [](I, X x) -> Tensors { return {sin(x[0])}; }},
      {"cos", "f", kSafe, [](I, X x) -> Tensors { return {cos(x[0])}; }},
      {"atan", "f", kSafe, [](I, X x) -> Tensors { return {atan(x[0])}; }},
      {"tanh", "f", kSafe, [](I, X x) -> Tensors { return {tanh(x[0])}; }},
      {"sigmoid", "f", kSafe, [](I, X x) -> Tensors { return {sigmoid(x[0])}; }},
      {"erf", "f", kSafe, [](I, X x) -> Tensors { return {erf(x[0])}; }},
      {"relu", "f", kSafe, [](I, X x) -> Tensors { return {nn::relu(x[0])}; }},
      {"floor", "f", kSafe | kJumps, [](I, X x) -> Tensors { return {floor(x[0])}; }},
      {"round", "f", kSafe | kJumps, [](I, X x) -> Tensors { return {round(x[0])}; }},
      {"identity", "a", kSafe, [](I, X x) -> Tensors { return {identity(x[0])}; }},
      {"stop_gradient", "a", kSafe, [](I, X x) -> Tensors { return {stop_gradient(x[0])}; }},
      {"softmax", "f", kSafe, [](I i, X x) -> Tensors { return require(rank_of(i) > 0), Tensors{nn::softmax(x[0])}; }},
      // of two, with broadcasting
      {"add", "nn", kSafe, [](I, X x) -> Tensors { return {x[0] + x[1]}; }},
      {"subtract", "nn", kSafe, [](I, X x) -> Tensors { return {x[0] - x[1]}; }},
      {"multiply", "nn", 0, [](I, X x) -> Tensors { return {x[0] * x[1]}; }},
      {"tanh_multiply", "ff", kSafe, [](I, X x) -> Tensors { return {tanh(x[0]) * x[1]}; }},
      {"divide", "ff", 0, [](I, X x) -> Tensors { return {x[0] / x[1]}; }},
      {"divide_no_nan", "ff", 0, [](I, X x) -> Tensors { return {divide_no_nan(x[0], x[1])}; }},
      {"maximum", "nn", kSafe, [](I, X x) -> Tensors { return {maximum(x[0], x[1])}; }},
      {"minimum", "nn", kSafe, [](I, X x) -> Tensors { return {minimum(x[0], x[1])}; }},
      {"squared_difference", "nn", 0, [](I, X x) -> Tensors { return {squared_difference(x[0], x[1])}; }},
      {"atan2", "ff", 0, [](I, X x) -> Tensors { return {atan2(x[0], x[1])}; }},
      {"pow", "ff", 0, [](I, X x) -> Tensors { return {pow(x[0], x[1])}; }},
      {"floormod", "ff", kJumps, [](I, X x) -> Tensors { return {x[0] % x[1]}; }},
      // with a number: 1 and 0 are among them
      {"add_number", "n", kSafe, [](I i, X x) -> Tensors { return {x[0] + i.number}; }},
      {"subtract_number", "n", kSafe, [](I i, X x) -> Tensors { return {x[0] - i.number}; }},
      {"multiply_number", "n", kSafe, [](I i, X x) -> Tensors { return {x[0] * i.number}; }},
      {"number_multiply", "n", kSafe, [](I i, X x) -> Tensors { return {i.number * x[0]}; }},
      {"divide_number", "f", 0, [](I i, X x) -> Tensors { return {x[0] / i.number}; }},
      {"number_divide", "f", 0, [](I i, X x) -> Tensors { return {i.number / x[0]}; }},
      {"number_subtract", "n", kSafe, [](I i, X x) -> Tensors { return {i.number - x[0]}; }},
      {"multiply_ones", "n", kSafe, [](I, X x) -> Tensors { return {x[0] * ones_like(x[0])}; }},
      {"add_zeros", "n", kSafe, [](I, X x) -> Tensors { return {zeros_like(x[0]) + x[0]}; }},
      {"add_n", "nn", kSafe, [](I, X x) -> Tensors { return {add_n({x[0], x[1], x[0]})}; }},
      // comparisons and choices
      {"less", "nn", kSafe | kJumps, [](I, X x) -> Tensors { return {x[0] < x[1]}; }},
      {"greater_equal", "nn", kSafe | kJumps, [](I, X x) -> Tensors { return {x[0] >= x[1]}; }},
      {"equal", "nn", kSafe | kJumps, [](I, X x) -> Tensors { return {equal(x[0], x[1])}; }},
      {"not_equal", "nn", kSafe | kJumps, [](I, X x) -> Tensors { return {not_equal(x[0], x[1])}; }},
      {"greater_number", "f", kSafe | kJumps, [](I i, X x) -> Tensors { return {x[0] > i.number}; }},
      {"is_finite", "f", kSafe | kJumps, [](I, X x) -> Tensors { return {is_finite(x[0])}; }},
      {"logical_and", "bb", kSafe | kJumps, [](I, X x) -> Tensors { return {logical_and(x[0], x[1])}; }},
      {"logical_xor", "bb", kSafe | kJumps, [](I, X x) -> Tensors { return {logical_xor(x[0], x[1])}; }},
      {"logical_not", "b", kSafe | kJumps, [](I, X x) -> Tensors { return {logical_not(x[0])}; }},
      {"where", "bnn", kSafe | kJumps, [](I, X x) -> Tensors { return {where(x[0], x[1], x[2])}; }},
      {"where_sign", "ff", kSafe | kJumps, [](I, X x) -> Tensors { return {where(x[0] > 0, x[0], x[1])}; }},
      // casts
      {"to_float32", "a", kSafe, [](I, X x) -> Tensors { return {cast(x[0], DType::float32)}; }},
      {"to_float64", "a", kSafe, [](I, X x) -> Tensors { return {cast(x[0], DType::float64)}; }},
      {"via_float16", "f", kSafe | kJumps,
       [](I, X x) -> Tensors { return {cast(cast(x[0], DType::float16), x[0].dtype())}; }},
      // What does not fit an int32 has no defined cast.
      {"to_int32", "f", kSafe | kJumps,
       [](I, X x) -> Tensors {
         return {cast(clip_by_value(where(is_finite(x[0]), x[0], zeros_like(x[0])), -100, 100), DType::int32)};
       }},
      {"bool_to_int32", "b", kSafe | kJumps, [](I, X x) -> Tensors { return {cast(x[0], DType::int32)}; }},
      {"to_bool", "n", kSafe | kJumps, [](I, X x) -> Tensors { return {cast(x[0], DType::bool_)}; }},
      // reductions
      {"reduce_sum", "n", kSafe,
       [](I i, X x) -> Tensors { return {reduce_sum(x[0], some_axes(i), i.ints[1] % 2 == 0)}; }},
      {"reduce_mean", "f", kSafe,
       [](I i, X x) -> Tensors { return {reduce_mean(x[0], some_axes(i), i.ints[1] % 2 == 0)}; }},
      {"reduce_max", "n", kSafe,
       [](I i, X x) -> Tensors { return {reduce_max(x[0], some_axes(i), i.ints[1] % 2 == 0)}; }},
      {"reduce_min", "n", kSafe,
       [](I i, X x) -> Tensors { return {reduce_min(x[0], some_axes(i), i.ints[1] % 2 == 0)}; }},
      {"reduce_prod", "f", 0,
       [](I i, X x) -> Tensors { return {reduce_prod(x[0], some_axes(i), i.ints[1] % 2 == 0)}; }},
      {"reduce_any", "b", kSafe | kJumps, [](I i, X x) -> Tensors { return {reduce_any(x[0], some_axes(i))}; }},
      {"reduce_all", "b", kSafe | kJumps, [](I i, X x) -> Tensors { return {reduce_all(x[0], some_axes(i))}; }},
      {"argmax", "f", kSafe | kJumps,
       [](I i, X x) -> Tensors { return {argmax(x[0], axis_of(i), DType::int32)}; }},
      {"remainder_of_sum", "i", kSafe | kJumps, [](I i, X x) -> Tensors { return {reduce_sum(x[0]) % (1 + i.ints[0] % 8)}; }},
      // products of matrices
      {"matmul", "ff", kSafe,
       [](I i, X x) -> Tensors {
         return {matmul(x[0], x[1], {.transpose_a = i.ints[0] % 2 == 0, .transpose_b = i.ints[1] % 2 == 0})};
       }},
      {"matmul_transposed", "ff", kSafe, [](I, X x) -> Tensors { return {matmul(x[0], transpose(x[1]))}; }},
      // forms
      {"flatten", "a", kSafe, [](I, X x) -> Tensors { return {reshape(x[0], {-1})}; }},
      {"reshape_reversed", "a", kSafe,
       [](I i, X x) -> Tensors { return {reshape(x[0], Dims64(i.shapes[0].rbegin(), i.shapes[0].rend()))}; }},
      {"reshape_same", "a", kSafe, [](I i, X x) -> Tensors { return {reshape(x[0], i.shapes[0])}; }},
      {"reshape_like", "aa", kSafe, [](I, X x) -> Tensors { return {reshape(x[0], shape(x[1]))}; }},
      {"reshape_one", "a", kSafe,
       [](I i, X x) -> Tensors { return {reshape(x[0], with_one(i.shapes[0], pick(i, 0, rank_of(i) + 1)))}; }},
      {"expand_dims", "a", kSafe,
       [](I i, X x) -> Tensors { return {expand_dims(x[0], static_cast<int>(pick(i, 0, rank_of(i) + 1)))}; }},
      {"transpose", "a", kSafe, [](I, X x) -> Tensors { return {transpose(x[0])}; }},
      {"concat", "aa", kSafe, [](I i, X x) -> Tensors { return {concat({x[0], x[1]}, axis_of(i))}; }},
      {"stack", "aa", kSafe, [](I i, X x) -> Tensors { return {stack({x[0], x[1]}, axis_of(i))}; }},
      {"slice", "a", kSafe, slice_of},
      {"row", "a", kSafe,
       [](I i, X x) -> Tensors { return {x[0](pick(i, 0, i.shapes[0].at(0)))}; }},
      {"every_other", "a", kSafe,
       [](I i, X x) -> Tensors { return require(rank_of(i) > 0), Tensors{x[0](slice(0, none, 2))}; }},
      {"unstack", "a", kSafe | kSmall,
       [](I i, X x) -> Tensors { return unstack(x[0], 0, first_dim(i, 6)); }},
      {"split", "a", kSafe | kSmall,
       [](I i, X x) -> Tensors {
         const int axis = axis_of(i);
         const int64_t n = i.shapes[0].at(static_cast<size_t>(axis));
         const int64_t parts = 2 + pick(i, 1, 2);
         require(n % parts == 0);
         return split(x[0], parts, axis);
       }},
      {"split_sizes", "a", kSafe,
       [](I i, X x) -> Tensors {
         const int axis = axis_of(i);
         const int64_t n = i.shapes[0].at(static_cast<size_t>(axis));
         require(n > 1);
         const int64_t first = 1 + pick(i, 1, n - 1);
         return split(x[0], Dims64{first, n - first}, axis);
       }},
      {"gather", "a", kSafe, gather_of},
      {"gather_by", "ai", kSafe | kJumps,
       [](I i, X x) -> Tensors {
         require(rank_of(i, 1) <= 1 && (rank_of(i, 1) == 0 || i.shapes[1][0] <= 256));
         return {gather(x[0], x[1] % i.shapes[0].at(0))};
       }},
      {"reverse", "a", kSafe, [](I i, X x) -> Tensors { return {reverse(x[0], Axes(axis_of(i)))}; }},
      {"roll", "n", kSafe, roll_of},
      {"pad", "n", kSafe, pad_of},
      {"tile", "n", kSafe | kSmall,
       [](I i, X x) -> Tensors { return {tile(x[0], Dims64(i.shapes[0].size(), 2))}; }},
      {"broadcast", "n", kSafe,
       [](I i, X x) -> Tensors {
         Dims64 to = i.shapes[0];
         to.insert(to.begin(), 2);
         return {broadcast_to(x[0], to)};
       }},
      {"literal", "f", kSafe,
       [](I i, X x) -> Tensors { return require(rank_of(i) > 0 && i.shapes[0].back() <= 300), literal_of(i, x); }},
      {"shape_of", "a", kSafe | kJumps, [](I, X x) -> Tensors { return {shape(x[0])}; }},
      // shapes that only the run knows, between shapes that are known
      {"masked_sum", "f", kSafe | kJumps,
       [](I i, X x) -> Tensors {
         const Tensor chosen = boolean_mask(x[0], x[0] > i.number);
         return {reduce_sum(tanh(chosen) * 2) + cast(size(chosen), x[0].dtype())};
       }},
      {"where_true", "b", kSafe | kJumps, [](I, X x) -> Tensors { return {reduce_sum(cast(where(x[0]), DType::int32))}; }},
      // loops over rows
      {"map_fn", "f", kSafe | kSmall | kLoops,
       [](I i, X x) -> Tensors {
         first_dim(i, 6);
         return {map_fn([](const Tensor& row) { return tanh(row) + reduce_sum(row); }, x[0])};
       }},
      {"scan", "f", kSafe | kSmall | kLoops,
       [](I i, X x) -> Tensors {
         first_dim(i, 6);
         return {scan([](const Tensor& a, const Tensor& row) { return sin(a) + row; }, x[0], x[0][0])};
       }},
      {"foldl", "f", kSafe | kSmall | kLoops,
       [](I i, X x) -> Tensors {
         first_dim(i, 6);
         return {foldl([](const Tensor& a, const Tensor& row) { return tanh(a) * row + a; }, x[0], x[0][0])};
       }},
      {"map_fn_captured", "ff", kSafe | kSmall | kLoops | kJumps,
       [](I i, X x) -> Tensors {
         first_dim(i, 6);
         const Tensor sum = reduce_sum(sin(x[1]));
         return {map_fn(
             [&](const Tensor& row) {
               const auto yes = [&] { return tanh(row) * cast(sum, row.dtype()); };
               return cond(reduce_sum(row) > i.number, yes, [&] { return cast(sum, row.dtype()) - row; });
             },
             x[0])};
       }},
      // arrays
      {"array_loop", "f", kSafe | kSmall | kLoops, array_loop},
      {"array_parts", "f", kSafe | kSmall, array_parts},
  };
  return ops;
}

inline const ProgramOp* find_op(const std::string& name) {
  for (const ProgramOp& op : program_ops()) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

}  // namespace runnel::random_program
