#include "tests/interop/mutate.h"

#include <algorithm>
#include <set>

#include "runnel/tensor/type_sets.h"
#include "tests/suite/values.h"

namespace runnel::interop {
namespace {

// Does the input select something, rather than being computed with?
bool selects(const Call& call, size_t i) {
  const ArgSpec& arg = call.spec(i);
  const DType dtype = call.in[i].value.dtype();
  if (!is_integer(dtype)) return false;
  if (arg.host_memory || arg.type_var < 0) return true;
  const uint32_t allowed = call.op->type_vars[static_cast<size_t>(arg.type_var)].allowed;
  return (allowed & floating.mask) == 0 && arg.type_var > 0;
}

std::vector<size_t> inputs_with_elements(const Call& call) {
  std::vector<size_t> all;
  for (size_t i = 0; i < call.in.size(); ++i) {
    if (call.in[i].has_elements()) all.push_back(i);
  }
  return all;
}

Shape with_dim(const Shape& shape, size_t axis, int64_t size) {
  Dims dims = shape.dims();
  dims[axis] = size;
  return Shape(dims);
}

int64_t random_size(Random& r) {
  static const std::vector<int64_t> sizes = {0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8};
  return r.one_of(sizes);
}

// ---- dtypes

DType real_of(DType t) { return t == complex128 ? float64 : float32; }
DType complex_of(DType t) { return t == float64 ? complex128 : complex64; }

// The attributes that name the dtype of an output follow the input's, as they must in most ops.
void follow(Call& call, DType from, DType to) {
  for (auto& [name, value] : call.attrs) {
    DType* dtype = std::get_if<DType>(&value);
    if (dtype) {
      if (*dtype == from)
        *dtype = to;
      else if (is_complex(from) && is_complex(to) && *dtype == real_of(from))
        *dtype = real_of(to);
      else if (is_float(from) && is_float(to) && *dtype == complex_of(from))
        *dtype = complex_of(to);
    }
    if (auto* list = std::get_if<std::vector<DType>>(&value)) std::replace(list->begin(), list->end(), from, to);
  }
}

void retype(Call& call, Random& r) {
  std::set<int> vars;
  for (size_t i : inputs_with_elements(call)) {
    if (call.spec(i).type_var >= 0) vars.insert(call.spec(i).type_var);
  }
  if (vars.empty()) return;
  const int var = r.one_of(std::vector<int>(vars.begin(), vars.end()));
  std::vector<DType> dtypes;
  for (DType t : data_dtypes()) {
    if (call.op->type_vars[static_cast<size_t>(var)].allows(t)) dtypes.push_back(t);
  }
  if (dtypes.empty() || r.once_in(12)) dtypes = data_dtypes();
  const DType to = r.one_of(dtypes);
  DType from = DType::invalid;
  for (size_t i : inputs_with_elements(call)) {
    if (call.spec(i).type_var != var) continue;
    Given& g = call.in[i];
    from = g.value.dtype();
    if (from != to) g.value = test::cast_values(g.value, to).value;
  }
  // The state behind handles has the dtype of what is written to it.
  for (Given& g : call.in) {
    if (g.kind == Given::Kind::variable && g.value.dtype() == from) g.value = test::cast_values(g.value, to).value;
    if (g.kind == Given::Kind::list && g.element_dtype == from) {
      g.element_dtype = to;
      for (Tensor& item : g.items) {
        if (item.defined()) item = test::cast_values(item, to).value;
      }
    }
    if (g.kind == Given::Kind::table && g.table_values.dtype() == from && !r.once_in(4)) {
      g.table_values = test::cast_values(g.table_values, to).value;
    }
  }
  if (!r.once_in(8)) follow(call, from, to);
}

// ---- sizes

// A size that occurs becomes another everywhere it occurs, also where a shape is an input.
void resize(Call& call, Random& r) {
  std::set<int64_t> sizes;
  for (size_t i : inputs_with_elements(call)) {
    for (int64_t d : call.in[i].value.shape()) sizes.insert(d);
  }
  if (sizes.empty()) return;
  const int64_t from = r.one_of(std::vector<int64_t>(sizes.begin(), sizes.end()));
  const int64_t to = random_size(r);
  const bool in_values = r.below(3) != 0;
  const bool in_selecting = r.below(3) != 0;
  for (size_t i : inputs_with_elements(call)) {
    Tensor& t = call.in[i].value;
    const bool selecting = selects(call, i);
    if (selecting && in_values) {
      auto values = test::values_of(t);
      bool changed = false;
      for (auto& v : values) {
        if (v != test::Value(static_cast<long double>(from))) continue;
        v = test::Value(static_cast<long double>(to));
        changed = true;
      }
      if (changed) {
        Tensor copy = Tensor::empty(t.dtype(), t.shape());
        plain_types.for_each([&]<class T>() {
          if (dtype_of<T> != t.dtype()) return;
          for (size_t k = 0; k < values.size(); ++k) test::store<T>(values[k], copy.mutable_data<T>()[k]);
        });
        t = copy;
      }
    }
    if (call.spec(i).host_memory && !in_selecting) continue;
    Dims dims = t.shape().dims();
    std::replace(dims.begin(), dims.end(), from, to);
    t = reshaped(t, Shape(dims), r);
  }
}

// One dimension of one input: what broadcasts, or does not fit.
void resize_one(Call& call, Random& r) {
  const std::vector<size_t> inputs = inputs_with_elements(call);
  if (inputs.empty()) return;
  Tensor& t = call.in[r.one_of(inputs)].value;
  if (t.rank() == 0) return;
  const auto axis = static_cast<size_t>(r.below(t.rank()));
  t = reshaped(t, with_dim(t.shape(), axis, r.once_in(2) ? 1 : random_size(r)), r);
}

void change_rank(Call& call, Random& r) {
  const std::vector<size_t> inputs = inputs_with_elements(call);
  if (inputs.empty()) return;
  const bool all = r.once_in(2);
  const bool more = r.once_in(2);
  const int64_t size = random_size(r);
  const size_t one = r.one_of(inputs);
  for (size_t i : inputs) {
    if (all ? call.spec(i).host_memory : i != one) continue;
    Tensor& t = call.in[i].value;
    Dims dims;
    if (more) dims.push_back(size);
    for (int d = !more && t.rank() > 0 ? 1 : 0; d < t.rank(); ++d) dims.push_back(t.shape()[d]);
    if (dims.size() <= 6) t = reshaped(t, Shape(dims), r);
  }
}

// ---- values

// A list that is an input: its items, their number, and what is known of their shape.
void change_items(Given& list, Random& r) {
  if (list.items.empty()) return;
  Tensor& item = r.one_of(list.items);
  switch (r.below(5)) {
    case 0: list.items.push_back(item); break;
    case 1: list.items.pop_back(); break;
    case 2:
      if (list.max_num_elements < 0) item = Tensor();
      break;
    case 3:
      if (item.defined()) list.element_shape = PartialShape::unknown_dims(item.rank());
      break;
    default:
      if (item.defined()) item = random_tensor(item.dtype(), item.shape(), item, false, r);
  }
}

void revalue(Call& call, Random& r) {
  for (Given& g : call.in) {
    if (g.kind == Given::Kind::list && !r.once_in(3)) return change_items(g, r);
  }
  const std::vector<size_t> inputs = inputs_with_elements(call);
  if (inputs.empty()) return;
  const bool all = r.once_in(3);
  const size_t one = r.one_of(inputs);
  for (size_t i : inputs) {
    if (all ? selects(call, i) : i != one) continue;
    Tensor& t = call.in[i].value;
    t = random_tensor(t.dtype(), t.shape(), t, selects(call, i), r);
  }
}

// Numbers that select, counted from the end, one off, or out of range.
void reselect(Call& call, Random& r) {
  std::vector<size_t> inputs;
  for (size_t i : inputs_with_elements(call)) {
    if (selects(call, i)) inputs.push_back(i);
  }
  if (inputs.empty()) return revalue(call, r);
  Tensor& t = call.in[r.one_of(inputs)].value;
  if (t.num_elements() == 0) return;
  int64_t from_end = r.below(4) + 1;
  for (const Given& g : call.in) {
    if (g.has_elements() && g.value.rank() > 1) from_end = r.once_in(3) ? g.value.shape()[0] : g.value.rank();
  }
  auto values = test::values_of(t);
  auto& v = values[static_cast<size_t>(r.below(static_cast<int64_t>(values.size())))];
  switch (r.below(4)) {
    case 0:
    case 1: v -= test::Value(static_cast<long double>(from_end)); break;
    case 2: v = test::Value(static_cast<long double>(r.below(5)) - 2); break;
    default: v += test::Value(r.once_in(2) ? 1.L : -1.L);
  }
  Tensor copy = Tensor::empty(t.dtype(), t.shape());
  plain_types.for_each([&]<class T>() {
    if (dtype_of<T> != t.dtype()) return;
    for (size_t k = 0; k < values.size(); ++k) test::store<T>(values[k], copy.mutable_data<T>()[k]);
  });
  t = copy;
}

// ---- lists of inputs

void change_lists(Call& call, Random& r) {
  if (!call.op->has_list_input || call.in.empty()) return revalue(call, r);
  const bool more = r.once_in(2);
  std::vector<Given> in;
  const ArgSpec* last = nullptr;
  for (size_t i = 0; i < call.in.size(); ++i) {
    const ArgSpec* arg = &call.spec(i);
    const bool first = arg != last;
    last = arg;
    if (arg->is_list() && first && !more) continue;
    in.push_back(call.in[i]);
    if (arg->is_list() && first && more) in.push_back(call.in[i]);
  }
  call.in = in;
  for (const ArgSpec& arg : call.op->inputs) {
    if (AttrValue* count = arg.count.empty() ? nullptr : call.attr(arg.count)) {
      const auto one = static_cast<uint64_t>(more ? 1 : -1);  // what overflows wraps around
      *count = static_cast<int64_t>(static_cast<uint64_t>(std::get<int64_t>(*count)) + one);
    }
    AttrValue* types = arg.type_list_attr.empty() ? nullptr : call.attr(arg.type_list_attr);
    auto* list = types ? std::get_if<std::vector<DType>>(types) : nullptr;
    if (!list || list->empty()) continue;
    if (more)
      list->insert(list->begin(), list->front());
    else
      list->erase(list->begin());
  }
}

}  // namespace

Call mutated(const std::vector<Call>& stated, const AttributePool& pool, Random& r) {
  Call call = r.one_of(stated);
  // Every rule has its turn alone, too: what changes little is easiest to understand.
  const int64_t changes = r.below(4) + (r.once_in(2) ? 1 : 0);
  if (changes == 0 || r.once_in(2)) retype(call, r);
  for (int64_t i = 0; i < changes; ++i) {
    switch (3 + r.below(13)) {
      case 3:
      case 4:
      case 5: resize(call, r); break;
      case 6: resize_one(call, r); break;
      case 7: change_rank(call, r); break;
      case 8:
      case 9:
      case 10: revalue(call, r); break;
      case 11:
      case 12: reselect(call, r); break;
      case 13:
      case 14: call.attrs.empty() ? revalue(call, r) : reset_attribute(call, pool, r); break;
      default: change_lists(call, r);
    }
  }
  return call;
}

}  // namespace runnel::interop
