// Other values for attributes.
#include <cmath>

#include "runnel/tensor/type_sets.h"
#include "tests/interop/mutate.h"

namespace runnel::interop {
namespace {

int64_t random_int(int64_t like, Random& r) {
  const auto bits = static_cast<uint64_t>(like);  // what overflows wraps around
  const std::vector<int64_t> near = {static_cast<int64_t>(bits + 1), static_cast<int64_t>(bits - 1), 0, 1, 2, 3, -1,
                                     static_cast<int64_t>(bits * 2)};
  if (!r.once_in(8)) return r.one_of(near);
  return r.one_of(std::vector<int64_t>{INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, int64_t{1} << 32, -7});
}

struct Varied {
  Random& r;

  void operator()(int64_t& v) const { v = random_int(v, r); }
  void operator()(bool& v) const { v = !v; }
  void operator()(double& v) const {
    const std::vector<double> near = {0, 1, -1, 0.5, v * 2, v / 2, -v, v + 0.1, 1e30, std::nan(""), HUGE_VAL};
    v = r.one_of(near);
  }
  void operator()(std::string& v) const { v = random_text(v, r); }
  void operator()(DType& v) const {
    const std::vector<DType> all = data_dtypes();
    v = r.one_of(all);
  }
  void operator()(PartialShape& v) const {
    if (r.once_in(4) || !v.has_rank()) {
      v = r.once_in(2) ? PartialShape::unknown() : PartialShape{r.below(4), kUnknownDim};
      return;
    }
    Dims dims = v.dims();
    if (dims.empty() || r.once_in(3))
      dims.push_back(r.below(4) - 1);
    else
      dims[static_cast<size_t>(r.below(static_cast<int64_t>(dims.size())))] = r.below(5) - 1;
    v = PartialShape(dims);
  }
  template <class T>
  void operator()(std::vector<T>& list) const {
    if (list.empty() || r.once_in(8)) {
      T added{};
      if (!list.empty()) added = r.one_of(list);
      list.push_back(added);
    } else if (r.once_in(8)) {
      list.pop_back();
    } else {
      (*this)(list[static_cast<size_t>(r.below(static_cast<int64_t>(list.size())))]);
    }
  }
  void operator()(Tensor&) const {}
  void operator()(FuncAttr&) const {}
};

}  // namespace

std::vector<DType> data_dtypes() {
  std::vector<DType> all;
  data_types.for_each([&]<class T>() { all.push_back(dtype_of<T>); });
  return all;
}

AttributePool::AttributePool(const std::vector<const OpDef*>& ops) {
  for (const OpDef* op : ops) {
    for (const AttrSpec& spec : op->attrs.specs) {
      auto& known = values_[spec.name + attr_type_name(spec.default_value)];
      auto add = [&](const AttrValue& v) {
        const DType* dtype = std::get_if<DType>(&v);
        if (!dtype || *dtype != DType::invalid) known.emplace(attr_to_string(v), v);
      };
      add(spec.default_value);
      for (const Sample& s : op->samples) {
        if (s.attrs) add(spec.get(s.attrs.get()));
      }
    }
  }
}

const AttrValue* AttributePool::one_of(const std::string& name, const AttrValue& like, Random& r) const {
  const uint64_t salt = r.bits();
  const auto found = values_.find(name + attr_type_name(like));
  if (found == values_.end()) return nullptr;
  const AttrValue* best = nullptr;
  uint64_t highest = 0;
  for (const auto& [text, value] : found->second) {
    const uint64_t score = hashed(salt, text);
    if (!best || score > highest) best = &value, highest = score;
  }
  return best;
}

void reset_attribute(Call& call, const AttributePool& pool, Random& r) {
  auto& [name, value] = call.attrs[static_cast<size_t>(r.below(static_cast<int64_t>(call.attrs.size())))];
  const bool text = std::holds_alternative<std::string>(value);
  const AttrValue* known = pool.one_of(name, value, r);
  if (known && (text ? !r.once_in(6) : r.once_in(3))) {
    value = *known;
  } else {
    std::visit(Varied{r}, value);
  }
}

}  // namespace runnel::interop
