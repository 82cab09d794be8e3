#pragma once

// What tells the calls of a function apart: which trace serves a call, and how a call is described.
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runnel/base/small_vector.h"
#include "runnel/base/source_site.h"
#include "runnel/function/structure.h"
#include "runnel/tensor/thread_context.h"

namespace runnel::function_detail {

// A number for each list of C++ types. Its address counts, so it is no constant, which a linker may merge with others.
template <class... T>
inline char types_mark = 0;
template <class... T>
uint64_t types_word() {
  return reinterpret_cast<uintptr_t>(&types_mark<T...>);
}

// What makes a trace fit a call: whether the layers around it train, the C++ types of the arguments (the body may be a
// template, and the result's type follows from them), dtype and shape of tensors, identity of variables, the value of
// everything else. As a list of words, and the tensors found on the way.
class RUNNEL_API CallKey {
 public:
  explicit CallKey(uint64_t types, const SourceSite& where = {}) : where(where) {
    words.push_back(thread_context().training);
    words.push_back(types);
  }
  SourceSite where;  // of the call, for errors
  bool training() const { return words[0] != 0; }
  uint64_t types() const { return words[1]; }

  SmallVector<uint64_t, 48> words;
  SmallVector<uint32_t, 32> dims_at;     // words that are dimensions
  SmallVector<uint32_t, 16> tensors_at;  // words that are a dtype and a rank; the dimensions follow
  SmallVector<const Tensor*, 16> tensors;

  void tag(uint64_t kind, uint64_t more = 0) { words.push_back(kind << 56 | more); }
  void tensor(const Tensor& t) {
    if (!t.defined()) return tag(1);
    tensors.push_back(&t);
    if (t.is_symbolic()) [[unlikely]] {
      return shape_of(t.dtype(), t.partial_shape());
    }
    const Dims& dims = t.shape().dims();
    tensors_at.push_back(static_cast<uint32_t>(words.size()));
    tag(2, static_cast<uint64_t>(t.dtype()) << 8 | dims.size());
    for (const int64_t d : dims) {
      dims_at.push_back(static_cast<uint32_t>(words.size()));
      words.push_back(static_cast<uint64_t>(d));
    }
  }
  void shape_of(DType dtype, const PartialShape& shape);
  void text(std::string_view s);
  template <class T>
  void number(T value) {
    if constexpr (std::is_enum_v<T>) {
      tag(4);
      words.push_back(static_cast<uint64_t>(value));
    } else if constexpr (std::integral<T>) {
      tag(4, std::same_as<T, bool> ? 1 : sizeof(T) << 1 | std::is_signed_v<T>);
      words.push_back(static_cast<uint64_t>(value));
    } else {
      tag(5, sizeof(T));
      std::array<uint64_t, (sizeof(T) + 7) / 8> bits{};
      std::memcpy(bits.data(), &value, sizeof(T));
      for (const uint64_t w : bits) words.push_back(w);
    }
  }
  void variable(const Variable& v);

  template <class T>
  void add(const T& value) {
    structure::visit<T>(value, *this);
  }

  // For structure::visit.
  void list(size_t size) { tag(8, size); }
  void map(size_t size) { tag(9, size); }
  void optional(bool has_value) { tag(10, has_value); }
  void item(size_t) {}
  template <class K>
  void entry(const K& key) {
    add(key);
  }
  void done() {}
  template <class T>
  void leaf(const T& value) {
    if constexpr (std::same_as<T, Tensor>) {
      tensor(value);
    } else if constexpr (std::same_as<T, TensorSpec>) {
      // Stands for a tensor that is not there: a symbol of its own would do, but only its description counts.
      specs.push_back(value);
      shape_of(value.dtype, value.shape);
      tensors.push_back(nullptr);
    } else if constexpr (std::same_as<T, Variable>) {
      variable(value);
    } else if constexpr (PlainText<T>) {
      text(value);
    } else if constexpr (PlainNumber<T>) {
      number(value);
    } else if constexpr (std::same_as<T, Gradient>) {
      tag(7, value.is_slices());
      if (!value.is_slices()) {
        tensor(value.dense());
      } else {
        tensor(value.slices().values);
        tensor(value.slices().indices);
        tensor(value.slices().dense_shape);
      }
    } else if constexpr (std::same_as<T, Nest>) {
      nest(value);
    } else {
      static_assert(NestLike<T>,
                    "a function takes and returns tensors, variables, numbers, texts and structures of them");
      owned_nests_.push_back(std::make_unique<Nest>(value));
      nest(*owned_nests_.back());
    }
  }

  std::vector<TensorSpec> specs;  // given in place of tensors, in order

 private:
  void nest(const Nest& n);
  std::vector<std::unique_ptr<Nest>> owned_nests_;
};

// One line per thing a call depends on: where it is, and what it is ("float32[2,3]", "int 3").
using CallText = std::vector<std::pair<std::string, std::string>>;
RUNNEL_API std::string tensor_text(const Tensor& t);
RUNNEL_API std::string number_text(double value);
RUNNEL_API void nest_text(const Nest& n, const std::string& path, CallText& out);

// Writes the lines, for structure::visit.
class RUNNEL_API CallDescriber {
 public:
  CallDescriber(std::string path, CallText& out);
  ~CallDescriber();

  void list(size_t size);
  void map(size_t size);
  void optional(bool has_value);
  void item(size_t i);
  template <class K>
  void entry(const K& key) {
    if constexpr (std::convertible_to<const K&, std::string>) {
      enter("[\"" + std::string(key) + "\"]");
    } else if constexpr (std::is_arithmetic_v<K>) {
      enter("[" + std::to_string(key) + "]");
    } else {
      enter("[...]");
    }
  }
  void done();
  template <class T>
  void leaf(const T& value) {
    if constexpr (std::same_as<T, Tensor>) {
      say(tensor_text(value));
    } else if constexpr (std::same_as<T, TensorSpec>) {
      say(value.str());
    } else if constexpr (std::same_as<T, Variable>) {
      say(value.defined() ? "Variable '" + value.name() + "'" : "no variable");
    } else if constexpr (PlainText<T>) {
      say("\"" + std::string(std::string_view(value)) + "\"");
    } else if constexpr (std::same_as<T, bool>) {
      say(value ? "true" : "false");
    } else if constexpr (std::is_enum_v<T>) {
      say(std::to_string(static_cast<int64_t>(value)));
    } else if constexpr (std::integral<T>) {
      say(std::to_string(value));
    } else if constexpr (std::floating_point<T>) {
      say(number_text(static_cast<double>(value)));
    } else if constexpr (PlainNumber<T>) {
      say("a number");
    } else if constexpr (std::same_as<T, Gradient>) {
      say(value.defined() ? (value.is_slices() ? "IndexedSlices" : tensor_text(value.dense())) : "none");
    } else {
      nest_text(Nest(value), path_, out_);
    }
  }

 private:
  void say(std::string what);
  void enter(const std::string& step);
  std::string path_;
  std::vector<size_t> outer_;
  CallText& out_;
};

template <class T>
void describe(const T& value, const std::string& path, CallText& out) {
  CallDescriber describer(path, out);
  structure::visit<T>(value, describer);
}

template <class T>
CallText described(const T& value, const std::string& path) {
  CallText out;
  describe<T>(value, path, out);
  return out;
}

}  // namespace runnel::function_detail
