// The ops that make dense tables and tables of vectors, and what users call.
#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/lookup.h"
#include "runnel/ops/lookup_table.h"

namespace runnel {
namespace {

// The dtype of the keys is that of the input, and no attribute by itself.
struct DenseAttrs : TensorTableAttrs {
  int64_t initial_num_buckets = DenseBuckets().initial;
  double max_load_factor = DenseBuckets().max_load_factor;
  static constexpr auto fields() {
    using A = DenseAttrs;
    return field_list(field("container", &A::container), field("shared_name", &A::shared_name),
                      field("use_node_name_sharing", &A::use_node_name_sharing), field("value_dtype", &A::value_dtype),
                      field("value_shape", &A::value_shape), field("initial_num_buckets", &A::initial_num_buckets),
                      field("max_load_factor", &A::max_load_factor));
  }
};
struct AnonymousDenseAttrs {
  DType value_dtype = DType::invalid;
  PartialShape value_shape = {};
  int64_t initial_num_buckets = DenseBuckets().initial;
  double max_load_factor = DenseBuckets().max_load_factor;
  static constexpr auto fields() {
    using A = AnonymousDenseAttrs;
    return field_list(field("value_dtype", &A::value_dtype), field("value_shape", &A::value_shape),
                      field("initial_num_buckets", &A::initial_num_buckets),
                      field("max_load_factor", &A::max_load_factor));
  }
};
struct AnonymousTensorTableAttrs {
  DType key_dtype = DType::invalid;
  DType value_dtype = DType::invalid;
  PartialShape value_shape = {};
  static constexpr auto fields() {
    using A = AnonymousTensorTableAttrs;
    return field_list(field("key_dtype", &A::key_dtype), field("value_dtype", &A::value_dtype),
                      field("value_shape", &A::value_shape));
  }
};

template <class A>
TableType tensor_table_type(const A& a) {
  if (!a.value_shape.is_static() || a.value_shape.rank() != 1) {
    throw invalid_argument("Default value must be a vector, got shape {}", a.value_shape.str());
  }
  return {.key = a.key_dtype, .value = a.value_dtype, .value_shape = Shape(a.value_shape)};
}

template <class A>
DenseBuckets dense_buckets(const A& a) {
  return {.initial = a.initial_num_buckets, .max_load_factor = a.max_load_factor};
}

template <class B>
auto with_marks(B op) {
  return op.type("key_dtype", key_types)
      .in("empty_key", "key_dtype")
      .in("deleted_key", "key_dtype")
      .out("table_handle", DType::resource)
      .shape(scalar_shape)
      .forwards()
      .stateful();
}

constexpr const char* kDense = "MutableDenseHashTable";
constexpr const char* kOfTensors = "MutableHashTableOfTensors";

}  // namespace

void register_lookup_dense(Registry& r) {
  r.define<TensorTableAttrs>("MutableHashTableOfTensorsV2")
      .out("table_handle", DType::resource)
      .shape(scalar_shape)
      .forwards()
      .cpu([](KernelContext& c, const TensorTableAttrs& a) {
        const TableType type = tensor_table_type(a);
        c.forward(0, handle_to_table(find_or_make_table(
                         a, type, kOfTensors, [&](const std::string& name) { return make_table(name, type); })));
      })
      .stateful()
      .doc("The table of that shared_name, whose values are vectors and which can change; a new one without a name.");
  r.define<AnonymousTensorTableAttrs>("AnonymousMutableHashTableOfTensors")
      .out("table_handle", DType::resource)
      .shape(scalar_shape)
      .forwards()
      .cpu([](KernelContext& c, const AnonymousTensorTableAttrs& a) {
        c.forward(0, handle_to_table(make_table(kOfTensors, tensor_table_type(a))));
      })
      .stateful()
      .doc("A new table whose values are vectors, which can change.");

  const Tensor empty(int64_t{-1}), deleted(int64_t{-2});
  with_marks(r.define<DenseAttrs>("MutableDenseHashTableV2"))
      .cpu([](KernelContext& c, const DenseAttrs& a) {
        const TableType type = dense_type(a.value_dtype, a.value_shape, c.in(0));
        const auto table = find_or_make_table(a, type, kDense, [&](const std::string& name) {
          return make_dense_table(name, a.value_dtype, a.value_shape, c.in(0), c.in(1), dense_buckets(a));
        });
        c.forward(0, handle_to_table(table));
      })
      .doc(
          "The table of that shared_name, which is kept in buckets; a new one without a name. Two keys that are never "
          "used mark buckets that are empty or were emptied.");
  with_marks(r.define<AnonymousDenseAttrs>("AnonymousMutableDenseHashTable"))
      .cpu([](KernelContext& c, const AnonymousDenseAttrs& a) {
        c.forward(0, handle_to_table(
                         make_dense_table(kDense, a.value_dtype, a.value_shape, c.in(0), c.in(1), dense_buckets(a))));
      })
      .doc("A new table that is kept in buckets.")
      .sample({.in = {empty, deleted}}, {.value_dtype = DType::float32, .initial_num_buckets = 4})
      .sample({.in = {empty, empty}, .error = "Empty and deleted keys cannot be equal"},
              {.value_dtype = DType::float32})
      .sample({.in = {empty, Tensor{int64_t{-2}}}, .error = "must have same shape"}, {.value_dtype = DType::float32})
      .sample({.in = {empty, deleted}, .error = "at least 4 and a power of 2"},
              {.value_dtype = DType::float32, .initial_num_buckets = 12})
      .sample({.in = {empty, deleted}, .error = "max_load_factor must be between 0 and 1"},
              {.value_dtype = DType::float32, .max_load_factor = 1})
      .sample({.in = {empty, deleted}, .error = "must be a scalar or a vector"},
              {.value_dtype = DType::float32, .value_shape = {2, 2}});
}

namespace lookup {

DenseHashTable::DenseHashTable(DType key_dtype, DType value_dtype, const Operand& default_value,
                               const Operand& empty_key, const Operand& deleted_key,
                               const DenseHashTableOptions& options)
    : default_(value_in(default_value, value_dtype)) {
  handle_ = composed(default_value.where(), [&] {
    const Tensor empty = value_in(empty_key, key_dtype), deleted = value_in(deleted_key, key_dtype);
    if (empty.dtype() != key_dtype || default_.dtype() != value_dtype) {
      throw invalid_argument("[DenseHashTable] empty_key is {} and default_value {}; the table is from {} to {}",
                             dtype_name(empty.dtype()), dtype_name(default_.dtype()), dtype_name(key_dtype),
                             dtype_name(value_dtype));
    }
    return handle_to_table(make_dense_table(options.name, value_dtype, default_.shape(), empty, deleted,
                                            {.initial = options.initial_num_buckets}));
  });
}
void DenseHashTable::insert(const Operand& keys, const Operand& values) { insert_into(handle_, keys, values); }
void DenseHashTable::remove(const Operand& keys) { remove_from(handle_, keys); }
Tensor DenseHashTable::lookup(const Operand& keys) const { return find(handle_, keys, default_); }
int64_t DenseHashTable::size() const { return size_of(handle_); }
TableContents DenseHashTable::export_contents(SourceSite where) const {
  const auto [keys, values] = export_from(handle_, where);
  return {keys, values};
}

}  // namespace lookup
}  // namespace runnel
