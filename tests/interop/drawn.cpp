// Calls drawn from declarations.
#include "runnel/tensor/type_sets.h"
#include "tests/interop/mutate.h"

namespace runnel::interop {
namespace {

class Drawing {
 public:
  Drawing(const OpDef& op, const AttributePool& pool, Random& r)
      : op_(op), pool_(pool), r_(r), call_{.op = &op, .in = {}, .attrs = default_attributes(op)} {
    const std::vector<int64_t> all = {0, 1, 1, 2, 2, 3, 4, 5, 7, 16, 33};
    for (int i = 0; i < 3; ++i) sizes_.push_back(r.one_of(all));
    rank_ = r.below(5);
    for (const TypeVar& var : op.type_vars) types_.push_back(one_allowed(var));
  }

  Call call() {
    for (const ArgSpec& arg : op_.inputs) add(arg);
    if (r_.once_in(30) && !call_.in.empty()) call_.in.pop_back();
    if (r_.once_in(30)) call_.in.push_back(given(any_dtype()));
    for (int64_t i = r_.below(4); i > 0 && !call_.attrs.empty(); --i) reset_attribute(call_, pool_, r_);
    // Where an attribute names a dtype, it is mostly one that is there.
    for (auto& [name, value] : call_.attrs) {
      DType* dtype = std::get_if<DType>(&value);
      if (dtype && *dtype == DType::invalid) *dtype = types_.empty() || r_.once_in(8) ? any_dtype() : types_.front();
    }
    return std::move(call_);
  }

 private:
  DType any_dtype() {
    static const std::vector<DType> all = data_dtypes();
    return r_.one_of(all);
  }

  DType one_allowed(const TypeVar& var) {
    std::vector<DType> allowed;
    for (DType t : data_dtypes()) {
      if (var.allows(t)) allowed.push_back(t);
    }
    return allowed.empty() || r_.once_in(30) ? any_dtype() : r_.one_of(allowed);
  }

  void add(const ArgSpec& arg) {
    const int64_t count = arg.is_list() ? r_.below(5) : 1;
    std::vector<DType> dtypes;
    for (int64_t i = 0; i < count; ++i) {
      DType dtype = arg.dtype;
      if (arg.type_var >= 0) dtype = types_[static_cast<size_t>(arg.type_var)];
      if (dtype == DType::invalid || r_.once_in(60)) dtype = any_dtype();
      dtypes.push_back(dtype);
      call_.in.push_back(given(dtype));
    }
    if (!arg.is_list() || r_.once_in(20)) return;
    if (AttrValue* n = arg.count.empty() ? nullptr : call_.attr(arg.count)) *n = count;
    if (AttrValue* list = arg.type_list_attr.empty() ? nullptr : call_.attr(arg.type_list_attr)) *list = dtypes;
  }

  Shape shape() {
    const int64_t rank = r_.once_in(3) ? r_.below(5) : rank_;
    Dims dims;
    for (int64_t i = 0; i < rank; ++i) dims.push_back(r_.one_of(sizes_));
    return Shape(dims);
  }

  Given given(DType dtype) {
    if (dtype == DType::variant) return list();
    if (dtype == DType::resource) {
      if (r_.once_in(10)) return {.value = Tensor::empty(DType::resource, Shape{})};  // refers to nothing
      if (r_.once_in(2)) return {.kind = Given::Kind::variable, .value = values(any_dtype(), shape())};
      const int64_t n = r_.below(4);
      return {
          .kind = Given::Kind::table,
          .value = random_tensor(DType::int64, {n}, Tensor::of<int64_t>({1, 2, 3}), true, r_),
          .table_values = values(r_.once_in(2) ? DType::float32 : DType::int64, r_.once_in(3) ? Shape{n, 2} : Shape{n}),
          .dense = r_.once_in(3)};
    }
    return {.value = values(dtype, shape())};
  }

  Given list() {
    Given g{.kind = Given::Kind::list};
    g.element_dtype = types_.empty() ? any_dtype() : types_.front();
    const Shape each = shape();
    for (int64_t i = r_.below(4); i > 0; --i) {
      g.items.push_back(values(g.element_dtype, r_.once_in(6) ? shape() : each));
      if (g.items.back().shape() != each) g.element_shape = PartialShape::unknown();
    }
    return g;
  }

  Tensor values(DType dtype, const Shape& shape) {
    const Tensor like = dtype == DType::string ? Tensor("ab") : Tensor{0, 1, 2, 3};
    return random_tensor(dtype, shape, like, is_integer(dtype) && !r_.once_in(4), r_);
  }

  const OpDef& op_;
  const AttributePool& pool_;
  Random& r_;
  Call call_;
  std::vector<int64_t> sizes_;
  int64_t rank_ = 0;
  std::vector<DType> types_;
};

}  // namespace

Call drawn(const OpDef& op, const AttributePool& pool, Random& r) { return Drawing(op, pool, r).call(); }

}  // namespace runnel::interop
