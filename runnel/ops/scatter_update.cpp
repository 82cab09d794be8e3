// Updating rows of a variable in place, and reading rows of it.
#include <algorithm>
#include <mutex>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math_common.h"
#include "runnel/ops/state.h"
#include "runnel/ops/variable_slot.h"

namespace runnel {
namespace {

struct ReadRowsAttrs {
  DType dtype = DType::invalid;
  int64_t batch_dims = 0;
  bool validate_indices = true;  // they always are
  static constexpr auto fields() {
    return field_list(field("dtype", &ReadRowsAttrs::dtype), field("batch_dims", &ReadRowsAttrs::batch_dims),
                      field("validate_indices", &ReadRowsAttrs::validate_indices));
  }
};

struct VariableShapeAttrs {
  DType out_type = DType::int32;
  static constexpr auto fields() {
    return field_list(field("out_type", &VariableShapeAttrs::out_type, {.types = index_types.mask}));
  }
};

// A variable, locked, and the rows of it that an op changes: what does not depend on the dtype.
class LockedRows {
 public:
  explicit LockedRows(KernelContext& c)
      : indices(int_values(c.in(1))), slot_(variable_slot(c.in(0))), lock_(slot_.mutex) {
    slot_.require_value();
    const Shape& shape = slot_.value.shape();
    if (shape.rank() == 0) throw invalid_argument("{} is a scalar: it has no rows", slot_.describe());
    Dims expected = c.in(1).shape().dims();
    expected.insert(expected.end(), shape.begin() + 1, shape.end());
    const Shape& given = c.in(2).shape();
    if (given.rank() != 0 && !(given.dims() == expected)) {
      throw invalid_argument("{} of shape {} with indices {} needs updates of shape {}, got {}", slot_.describe(),
                             shape.str(), c.in(1).shape().str(), Shape(expected).str(), given.str());
    }
    for (int64_t i : indices) {
      if (i < 0 || i >= shape[0]) {
        throw invalid_argument("index {} is outside {} of shape {}", i, slot_.describe(), shape.str());
      }
    }
    width = shape[0] == 0 ? 0 : shape.num_elements() / shape[0];
  }
  Tensor& writable() { return slot_.writable(); }

  const Dims indices;
  int64_t width;  // of one row, in elements

 private:
  VariableSlot& slot_;
  std::lock_guard<std::mutex> lock_;
};

// Calls change(old, new) for every element of the rows that `indices` names; updates may be one scalar for all.
template <class T, class Change>
void scatter_rows(KernelContext& c, Change change) {
  LockedRows rows(c);
  T* value = rows.writable().mutable_data<T>();
  const T* u = c.in<T>(2);
  const bool scalar = c.in(2).rank() == 0;
  for (int64_t i : rows.indices) {
    T* row = value + i * rows.width;
    for (int64_t j = 0; j < rows.width; ++j) row[j] = change(row[j], scalar ? *u : u[j]);
    if (!scalar) u += rows.width;
  }
}

template <class Types, class Change>
void define_scatter(Registry& r, const char* name, const char* doc, Types types, Change) {
  r.define(name)
      .type("dtype", types)
      .in("resource", DType::resource)
      .type("Tindices", index_types)
      .in_host("indices", "Tindices")
      .in("updates", "dtype")
      .shape([](InferContext&) {})
      .cpu([]<class T>(KernelContext& c) { scatter_rows<T>(c, Change{}); })
      .stateful()
      .doc(doc);
}

void scatter(const char* name, const Variable& v, const IndexedSlices& delta, const SourceSite& where) {
  composed(where, [&] {
    const Op op(name);
    op.many({v.handle(), delta.indices, delta.values});
  });
}

}  // namespace

void register_scatter_update(Registry& r) {
  define_scatter(r, "ResourceScatterAdd", "Adds updates to rows of a variable; an index may come twice.", numbers,
                 [](auto a, auto b) { return static_cast<decltype(a)>(wrapping(a) + wrapping(b)); });
  define_scatter(r, "ResourceScatterSub", "Subtracts updates from rows of a variable.", numbers,
                 [](auto a, auto b) { return static_cast<decltype(a)>(wrapping(a) - wrapping(b)); });
  define_scatter(r, "ResourceScatterMul", "Multiplies rows of a variable by updates.", numbers,
                 [](auto a, auto b) { return static_cast<decltype(a)>(wrapping(a) * wrapping(b)); });
  define_scatter(r, "ResourceScatterDiv", "Divides rows of a variable by updates.", numbers, [](auto a, auto b) {
    if (b == decltype(b)(0)) throw invalid_argument("division by zero");
    if constexpr (std::is_integral_v<decltype(a)> && std::is_signed_v<decltype(a)>) {  // -1: wraps around
      if (b == decltype(b)(-1)) return static_cast<decltype(a)>(0 - wrapping(a));
    }
    return static_cast<decltype(a)>(a / b);
  });
  define_scatter(r, "ResourceScatterMin", "Lowers rows of a variable to updates.", real_numbers,
                 [](auto a, auto b) { return b < a ? b : a; });
  define_scatter(r, "ResourceScatterMax", "Raises rows of a variable to updates.", real_numbers,
                 [](auto a, auto b) { return a < b ? b : a; });
  define_scatter(r, "ResourceScatterUpdate", "Replaces rows of a variable by updates.", data_types,
                 [](auto, auto b) { return b; });

  r.define<ReadRowsAttrs>("ResourceGather")
      .in("resource", DType::resource)
      .type("Tindices", index_types)
      .in("indices", "Tindices")
      .out("output", "dtype")
      .shape([](InferContext& c, const ReadRowsAttrs& a) {
        if (a.batch_dims < 0) throw invalid_argument("batch_dims must not be negative, got {}", a.batch_dims);
        const Tensor* handle = c.constant(0);
        if (!handle || !c.input(1).has_rank()) return c.output(PartialShape::unknown());
        const PartialShape& whole = variable_slot(*handle).shape;
        if (!whole.has_rank()) return c.output(PartialShape::unknown());
        if (whole.rank() == 0) throw invalid_argument("the variable is a scalar: it has no rows");
        const auto batch = static_cast<int>(a.batch_dims);
        if (batch < 0 || batch > c.input(1).rank() || batch >= whole.rank()) {
          throw invalid_argument("{} batch_dims for indices {} and a variable {}", a.batch_dims, c.input(1).str(),
                                 whole.str());
        }
        Dims dims = c.input(1).dims();
        dims.insert(dims.end(), whole.begin() + batch + 1, whole.end());
        c.output(PartialShape(dims));
      })
      .forwards()
      .cpu([](KernelContext& c, const ReadRowsAttrs& a) {
        VariableSlot& slot = variable_slot(c.in(0));
        Tensor value;
        {
          std::lock_guard lock(slot.mutex);
          slot.require_value();
          value = slot.value;
        }
        if (slot.dtype != a.dtype) {
          throw invalid_argument("{} holds {}, asked for {}", slot.describe(), dtype_name(slot.dtype),
                                 dtype_name(a.dtype));
        }
        const Unrecorded inner;
        try {
          c.forward(0, gather(value, c.in(1), 0, static_cast<int>(a.batch_dims)));
        } catch (const Error& e) {
          throw e.reworded(fmt::format("{}, reading rows of {}", e.what(), slot.describe()));
        }
      })
      .any_device()
      .grad([](const GradCtx& g, const ReadRowsAttrs& a) {
        if (a.batch_dims != 0) {
          throw make_error(Code::unimplemented,
                           "rows read from a variable with batch_dims = {} have no derivative: gather from its value",
                           a.batch_dims);
        }
        const Variable v = Variable::from_handle(g.x(0));
        const Tensor whole = shape(v.value());
        Dims row{-1};
        const Shape value_shape = v.shape();
        row.insert(row.end(), value_shape.begin() + 1, value_shape.end());
        return Gradients{IndexedSlices{reshape(g.dy(), row), reshape(g.x(1), {-1}), whole}, {}};
      })
      .stateful()
      .reads_variable()
      .doc("Rows of a variable; its gradient is IndexedSlices.");

  r.define<VariableShapeAttrs>("VariableShape")
      .in("input", DType::resource)
      .out("output", "out_type")
      .shape([](InferContext& c) { c.output(PartialShape{kUnknownDim}); })
      .cpu([](KernelContext& c) {
        const Shape s = Variable::from_handle(c.in(0)).shape();
        const Tensor& to = c.allocate(0, {s.rank()});
        index_types.for_each([&]<class I>() {
          if (to.dtype() == dtype_of<I>) std::copy(s.begin(), s.end(), to.mutable_data<I>());
        });
      })
      .stateful()
      .doc("The shape of a variable's value.");
}

const Variable& Variable::scatter_add(const IndexedSlices& delta, SourceSite where) const {
  scatter("ResourceScatterAdd", *this, delta, where);
  return *this;
}
const Variable& Variable::scatter_sub(const IndexedSlices& delta, SourceSite where) const {
  scatter("ResourceScatterSub", *this, delta, where);
  return *this;
}
const Variable& Variable::scatter_mul(const IndexedSlices& factor, SourceSite where) const {
  scatter("ResourceScatterMul", *this, factor, where);
  return *this;
}
const Variable& Variable::scatter_div(const IndexedSlices& divisor, SourceSite where) const {
  scatter("ResourceScatterDiv", *this, divisor, where);
  return *this;
}
const Variable& Variable::scatter_min(const IndexedSlices& bound, SourceSite where) const {
  scatter("ResourceScatterMin", *this, bound, where);
  return *this;
}
const Variable& Variable::scatter_max(const IndexedSlices& bound, SourceSite where) const {
  scatter("ResourceScatterMax", *this, bound, where);
  return *this;
}
const Variable& Variable::scatter_update(const IndexedSlices& rows, SourceSite where) const {
  scatter("ResourceScatterUpdate", *this, rows, where);
  return *this;
}

Tensor Variable::sparse_read(const Operand& indices) const {
  return composed(indices.where(), [&]() -> Tensor {
    static const Op<ReadRowsAttrs> op("ResourceGather");
    return op({handle_, indices}, {.dtype = dtype()});
  });
}

}  // namespace runnel
