#include "runnel/data/item.h"

#include <mutex>
#include <ostream>
#include <sstream>

#include "runnel/base/format.h"
#include "runnel/data/state.h"

namespace runnel::data {
namespace {

template <class A, class B>
bool same(const NestOf<A>& a, const NestOf<B>& b) {
  if (a.kind() != b.kind() || a.size() != b.size() || a.keys() != b.keys()) return false;
  if (a.spec() != b.spec() && (!a.spec() || !b.spec() || !a.spec()->fits(*b.spec()))) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same(a.items()[i], b.items()[i])) return false;
  }
  return true;
}

template <class Leaf>
NestOf<Slot> bare(const NestOf<Leaf>& nest) {
  auto next = [] { return Slot{}; };
  return nest::detail::fill<Slot>(nest, next);
}

struct Table {
  std::mutex mutex;
  std::vector<std::unique_ptr<Structure>> all;
};
Table& table() {
  static auto* made = new Table;
  return *made;
}

void find_parts(const NestOf<Slot>& nest, const std::string& path, Structure& out) {
  const bool whole =
      nest.kind() == NestKind::sparse || nest.kind() == NestKind::ragged || nest.kind() == NestKind::slices;
  if (nest.is_leaf() || whole) {
    const size_t n = nest::flatten(nest).size();
    out.parts.push_back({nest.kind(), out.leaves, n, path});
    out.leaves += n;
    out.plain = out.plain && nest.is_leaf();
    return;
  }
  for (size_t i = 0; i < nest.size(); ++i) {
    find_parts(nest.items()[i], path + nest::detail::step(nest.kind(), i, nest.keys()), out);
  }
}

template <class Leaf>
const Structure* find(const NestOf<Leaf>& nest) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  for (const auto& s : t.all) {
    if (same(s->nest, nest)) return s.get();
  }
  auto made = std::make_unique<Structure>();
  made->nest = bare(nest);
  find_parts(made->nest, "", *made);
  t.all.push_back(std::move(made));
  return t.all.back().get();
}

void collect(const Nest& nest, std::vector<Tensor>& out) {
  if (nest.is_leaf()) {
    out.push_back(nest.leaf());
  } else {
    for (const Nest& each : nest.items()) collect(each, out);
  }
}

}  // namespace

const Structure* structure_of(const NestOf<Slot>& nest) { return find(nest); }
const Structure* structure_of(const ElementSpec& spec) { return find(spec); }
const Structure* structure_of(const Nest& nest, const Structure* guess) {
  if (guess != nullptr && same(guess->nest, nest)) return guess;
  return find(nest);
}

Nest to_nest(const Item& item) { return nest::pack(item.structure->nest, item.tensors); }

void from_nest(const Nest& nest, Item& out) {
  thread_local const Structure* last = nullptr;
  last = out.structure = structure_of(nest, last);
  out.tensors.clear();
  collect(nest, out.tensors);
}

size_t bytes_of(const Item& item) {
  size_t bytes = 0;
  for (const Tensor& t : item.tensors) {
    if (!t.defined()) continue;
    bytes += t.num_bytes();
    if (t.dtype() == DType::string) {
      for (int64_t i = 0; i < t.num_elements(); ++i) bytes += t.data<Bytes>()[i].size();
    }
  }
  return bytes;
}

ElementSpec spec_of(const Item& item) {
  std::vector<TensorSpec> leaves;
  for (const Tensor& t : item.tensors) leaves.push_back({t.partial_shape(), t.dtype(), ""});
  return nest::pack(item.structure->nest, leaves);
}

namespace {

bool says_nothing(const ElementSpec& spec) {
  return spec.is_leaf() && spec.leaf().dtype == DType::invalid && !spec.leaf().shape.has_rank();
}

TensorSpec relaxed_leaf(const TensorSpec& x, const TensorSpec& y, const std::string& path, const char* what) {
  if (x.dtype != y.dtype && x.dtype != DType::invalid && y.dtype != DType::invalid) {
    throw invalid_argument(
        "[{}] the datasets differ at element{}: {} and {}: give both one dtype, with cast() in a map of one of them",
        what, path, x.str(), y.str());
  }
  TensorSpec out;
  out.dtype = x.dtype == y.dtype ? x.dtype : DType::invalid;
  if (!x.shape.has_rank() || !y.shape.has_rank() || x.shape.rank() != y.shape.rank()) {
    out.shape = PartialShape::unknown();
    return out;
  }
  Dims dims;
  for (int i = 0; i < x.shape.rank(); ++i) dims.push_back(x.shape[i] == y.shape[i] ? x.shape[i] : kUnknownDim);
  out.shape = PartialShape(dims);
  return out;
}

ElementSpec relaxed_at(const ElementSpec& a, const ElementSpec& b, const std::string& path, const char* what) {
  if (a.is_leaf() && b.is_leaf()) return relaxed_leaf(a.leaf(), b.leaf(), path, what);
  if (says_nothing(a)) return a;
  if (says_nothing(b)) return b;
  const bool alike = a.kind() == b.kind() && a.size() == b.size() && a.keys() == b.keys() &&
                     (a.spec() == b.spec() || (a.spec() && b.spec() && a.spec()->fits(*b.spec())));
  if (!alike) {
    throw invalid_argument("[{}] the datasets differ in structure at element{}: {} and {}: give both the same in a map",
                           what, path, str(a), str(b));
  }
  std::vector<ElementSpec> items;
  for (size_t i = 0; i < a.size(); ++i) {
    items.push_back(relaxed_at(a.items()[i], b.items()[i], path + nest::detail::step(a.kind(), i, a.keys()), what));
  }
  return a.rebuilt<TensorSpec>(std::move(items));
}

}  // namespace

ElementSpec relaxed(const ElementSpec& a, const ElementSpec& b, const char* what) { return relaxed_at(a, b, "", what); }

namespace {
std::string leaf_text(const TensorSpec& spec) {
  if (spec.dtype == DType::invalid) return spec.shape.has_rank() ? fmt::format("?{}", spec.shape.str()) : "?";
  return spec.str();
}
}  // namespace

namespace {

// `leaf` gives the text of a leaf.
template <class Leaf, class F>
std::string nest_text(const NestOf<Leaf>& nest, const F& leaf) {
  if (nest.is_leaf()) return leaf(nest.leaf());
  std::string text;
  for (size_t i = 0; i < nest.size(); ++i) {
    if (i > 0) text += ", ";
    if (i < nest.keys().size()) text += fmt::format("'{}': ", nest.keys()[i]);
    text += nest_text(nest.items()[i], leaf);
  }
  switch (nest.kind()) {
    case NestKind::tuple: return fmt::format("({})", text);
    case NestKind::list: return fmt::format("[{}]", text);
    case NestKind::map: return fmt::format("{{{}}}", text);
    case NestKind::sparse: return fmt::format("SparseTensor({})", text);
    case NestKind::ragged: return fmt::format("RaggedTensor({})", text);
    case NestKind::slices: return fmt::format("IndexedSlices({})", text);
    default: return nest.spec() ? nest.spec()->describe() : text;
  }
}

}  // namespace

std::string str(const ElementSpec& spec) { return nest_text(spec, leaf_text); }

namespace {

void encode(const NestOf<Slot>& nest, StateWriter& out) {
  if (nest.kind() == NestKind::composite)
    throw invalid_argument("{} cannot be written to a file", nest.spec()->describe());
  out.integer(static_cast<uint64_t>(nest.kind()));
  if (nest.is_leaf()) return;
  out.integer(nest.size());
  for (size_t i = 0; i < nest.size(); ++i) {
    if (nest.kind() == NestKind::map) out.text(nest.keys()[i]);
    encode(nest.items()[i], out);
  }
}

NestOf<Slot> decode(StateReader& in, int depth) {
  const auto kind = static_cast<NestKind>(in.integer());
  if (kind == NestKind::leaf) return Slot{};
  const uint64_t n = in.integer();
  if (kind >= NestKind::composite || n > 1u << 20 || depth > 100)
    throw Error(Code::data_loss, "bytes that describe no structure");
  std::vector<NestOf<Slot>> items;
  std::map<std::string, NestOf<Slot>> entries;
  for (uint64_t i = 0; i < n; ++i) {
    const std::string key = kind == NestKind::map ? std::string(in.text()) : "";
    items.push_back(decode(in, depth + 1));
    if (kind == NestKind::map) entries.emplace(key, items.back());
  }
  switch (kind) {
    case NestKind::tuple: return NestOf<Slot>::tuple(std::move(items));
    case NestKind::list: return NestOf<Slot>::list(std::move(items));
    case NestKind::map: return NestOf<Slot>::map(entries);
    default: break;
  }
  const bool fits = kind == NestKind::sparse   ? n == 3
                    : kind == NestKind::ragged ? n == 2 && items[1].is_leaf()
                                               : kind == NestKind::slices && (n == 2 || n == 3);
  if (!fits) throw Error(Code::data_loss, "bytes that describe no structure");
  // Composites of tensors: the bare structure of one, with these parts.
  const Tensor t(0);
  const NestOf<Slot> like = kind == NestKind::sparse ? bare(Nest(SparseTensor{t, t, t}))
                            : kind == NestKind::slices
                                ? bare(Nest(IndexedSlices{t, t, items.size() > 2 ? t : Tensor()}))
                                : bare(Nest(RaggedTensor::of<int>({{1}})));
  return like.rebuilt<Slot>(std::move(items));
}

}  // namespace

std::string encode_structure(const Structure* structure) {
  StateWriter w;
  encode(structure->nest, w);
  return w.take();
}

const Structure* decode_structure(std::string_view bytes) {
  StateReader in(bytes);
  return structure_of(decode(in, 0));
}

TensorSpec scalar_spec(DType dtype) {
  TensorSpec spec;
  spec.dtype = dtype;
  return spec;
}

namespace {
std::string structure_text(const Structure* s) {
  if (s == nullptr) return "nothing";
  auto next = [] { return TensorSpec{PartialShape::unknown(), DType::invalid, ""}; };
  return str(nest::detail::fill<TensorSpec>(s->nest, next));
}
}  // namespace

void detail::wrong_structure(const Structure* wanted, const Structure* got) {
  throw invalid_argument("an element has the structure {}, not {}", structure_text(got), structure_text(wanted));
}

void detail::require_structure(const ElementSpec& spec, const Structure* wanted) {
  const bool unknown = spec.is_leaf() && spec.leaf().dtype == DType::invalid;
  if (unknown || structure_of(spec) == wanted) return;
  throw invalid_argument("[as] the elements are {}, not {}", str(spec), structure_text(wanted));
}

}  // namespace runnel::data

namespace runnel {

std::ostream& detail::show(std::ostream& out, const NestOf<TensorSpec>& spec) { return out << data::str(spec); }

std::ostream& detail::show(std::ostream& out, const Nest& nest) {
  return out << data::nest_text(nest, [](const Tensor& t) {
           std::ostringstream text;
           text << t;
           return text.str();
         });
}

}  // namespace runnel
