#include "runnel/ops/lookup.h"

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/lookup_table.h"

namespace runnel {
namespace {

struct TableExportAttrs {
  DType Tkeys = DType::invalid;
  DType Tvalues = DType::invalid;
  static constexpr auto fields() {
    return field_list(field("Tkeys", &TableExportAttrs::Tkeys), field("Tvalues", &TableExportAttrs::Tvalues));
  }
};

// The table of a handle that is known by now; null while a graph is built that gets it later.
const Table* known_table(InferContext& c) {
  const Tensor* handle = c.constant(0);
  return handle ? &table_of(*handle) : nullptr;
}

void check_default(const Table& table, const Tensor& value, const Shape& values) {
  require_dtype(table, "values", table.type.value, value.dtype());
  if (value.shape() == table.type.value_shape || value.shape() == values) return;
  if (table.type.value_shape.rank() == 0) {
    throw invalid_argument("default_value must be a scalar or have the shape of the keys");
  }
  throw invalid_argument("default_value must have the shape of one value, {}, or of all, {}, got {}",
                         table.type.value_shape.str(), values.str(), value.shape().str());
}

}  // namespace

void register_lookup(Registry& r) {
  r.define("LookupTableFindV2")
      .in("table_handle", DType::resource)
      .type("Tin", key_types)
      .in("keys", "Tin")
      .type("Tout", data_types)
      .in("default_value", "Tout")
      .out("values", "Tout")
      .shape([](InferContext& c) {
        const Table* table = known_table(c);
        c.output(table ? table->values_for(c.input(1)) : PartialShape::unknown());
      })
      .cpu([](KernelContext& c) {
        const Table& table = table_of(c.in(0));
        check_keys(table, c.in(1));
        check_default(table, c.in(2), c.out().shape());
        if (table.type.fixed && !table.filled) {
          throw make_error(Code::failed_precondition, "{} has no contents yet: initialize it first", table.describe());
        }
        table.find(c.in(1), c.in(2), c.out());
      })
      .stateful()
      .not_differentiable()
      .doc("The values of the keys, the default for keys that are not there.");

  r.define("LookupTableInsertV2")
      .in("table_handle", DType::resource)
      .type("Tin", key_types)
      .in("keys", "Tin")
      .type("Tout", data_types)
      .in("values", "Tout")
      .shape([](InferContext&) {})
      .cpu([](KernelContext& c) {
        Table& table = table_of(c.in(0));
        if (table.type.fixed) {
          throw make_error(Code::unimplemented, "{} is fixed: nothing can be inserted", table.describe());
        }
        check_entries(table, c.in(1), c.in(2));
        table.insert(c.in(1), c.in(2));
      })
      .stateful()
      .doc("Gives keys values.");

  r.define("LookupTableRemoveV2")
      .in("table_handle", DType::resource)
      .type("Tin", key_types)
      .in("keys", "Tin")
      .shape([](InferContext&) {})
      .cpu([](KernelContext& c) {
        Table& table = table_of(c.in(0));
        check_keys(table, c.in(1));
        table.remove(c.in(1));
      })
      .stateful()
      .doc("Forgets keys; those that are not there are passed over.");

  r.define("LookupTableSizeV2")
      .in("table_handle", DType::resource)
      .out("size", DType::int64)
      .shape(scalar_shape)
      .cpu([](KernelContext& c) { *c.out<int64_t>() = table_of(c.in(0)).size(); })
      .stateful()
      .doc("How many keys there are.");

  r.define<TableExportAttrs>("LookupTableExportV2")
      .in("table_handle", DType::resource)
      .out("keys", "Tkeys")
      .out("values", "Tvalues")
      .shape([](InferContext& c) {
        const Table* table = known_table(c);
        auto [keys, values] =
            table ? table->contents_shapes() : std::pair(PartialShape::unknown(), PartialShape::unknown());
        c.output(0, std::move(keys));
        c.output(1, std::move(values));
      })
      .forwards()
      .cpu([](KernelContext& c, const TableExportAttrs& a) {
        const Table& table = table_of(c.in(0));
        if (table.type.key != a.Tkeys || table.type.value != a.Tvalues) {
          throw invalid_argument("{} maps {}, not {} to {}", table.describe(), described(table.type),
                                 dtype_name(a.Tkeys), dtype_name(a.Tvalues));
        }
        auto [keys, values] = table.contents();
        c.forward(0, keys);
        c.forward(1, values);
      })
      .stateful()
      .doc("All keys and values of a table; of a dense one, its buckets.");
}

namespace lookup {

Tensor value_in(const Operand& x, DType dtype) {
  return composed(x.where(), [&] { return x.is_literal() ? x.as(dtype) : *x.tensor(); });
}

namespace {

// Numbers and texts as keys or values of the table.
Operand key_for(const Tensor& handle, const Operand& keys) {
  return Operand(value_in(keys, table_of(handle).type.key), keys.where());
}
Operand value_for(const Tensor& handle, const Operand& values) {
  return Operand(value_in(values, table_of(handle).type.value), values.where());
}

}  // namespace

Tensor find(const Tensor& handle, const Operand& keys, const Operand& default_value) {
  static const Op op("LookupTableFindV2");
  return op({handle, key_for(handle, keys), value_for(handle, default_value)});
}

int64_t size_of(const Tensor& handle) {
  static const Op op("LookupTableSizeV2");
  return op({handle}).item<int64_t>();
}

void insert_into(const Tensor& handle, const Operand& keys, const Operand& values) {
  static const Op op("LookupTableInsertV2");
  op.many({handle, key_for(handle, keys), value_for(handle, values)});
}

void remove_from(const Tensor& handle, const Operand& keys) {
  static const Op op("LookupTableRemoveV2");
  op.many({handle, key_for(handle, keys)});
}

std::pair<Tensor, Tensor> export_from(const Tensor& handle, const SourceSite& where) {
  static const Op<TableExportAttrs> op("LookupTableExportV2");
  const TableType& type = table_of(handle).type;
  const auto parts = op.many({handle}, {.Tkeys = type.key, .Tvalues = type.value}, &where);
  return {parts[0], parts[1]};
}

namespace {

Tensor table_handle(const std::string& name, const TableType& type, const SourceSite& where) {
  return composed(where, [&] { return handle_to_table(make_table(name, type)); });
}

void fill(const Tensor& handle, const Operand& keys, const Operand& values) {
  static const Op op("InitializeTableV2");
  op.many({handle, keys, values});
}

// Of a table whose values have this default.
TableType open_type(DType key, const Tensor& default_value) {
  const Shape& shape = default_value.shape();
  if (shape.rank() > 1) {
    throw invalid_argument("[MutableHashTable] default_value must be a scalar or a vector, got shape {}", shape.str());
  }
  return {.key = key, .value = default_value.dtype(), .value_shape = shape};
}

}  // namespace

StaticHashTable::StaticHashTable(const Operand& keys, const Operand& values, const Operand& default_value,
                                 const std::string& name)
    : handle_(table_handle(name, {.key = keys.natural_dtype(), .value = values.natural_dtype(), .fixed = true},
                           keys.where())),
      default_(value_in(default_value, values.natural_dtype())) {
  fill(handle_, keys, values);
}
StaticHashTable::StaticHashTable(const TableInitializer& initializer, const Operand& default_value,
                                 const std::string& name)
    : StaticHashTable(Operand(initializer.keys, default_value.where()), Operand(initializer.values), default_value,
                      name) {}
Tensor StaticHashTable::lookup(const Operand& keys) const { return find(handle_, keys, default_); }
int64_t StaticHashTable::size() const { return size_of(handle_); }

MutableHashTable::MutableHashTable(DType key_dtype, DType value_dtype, const Operand& default_value,
                                   const std::string& name)
    : default_(value_in(default_value, value_dtype)) {
  handle_ = composed(default_value.where(), [&] {
    if (default_.dtype() != value_dtype) {
      throw invalid_argument("[MutableHashTable] default_value is {}, the values are {}", dtype_name(default_.dtype()),
                             dtype_name(value_dtype));
    }
    return handle_to_table(make_table(name, open_type(key_dtype, default_)));
  });
}
void MutableHashTable::insert(const Operand& keys, const Operand& values) { insert_into(handle_, keys, values); }
void MutableHashTable::remove(const Operand& keys) { remove_from(handle_, keys); }
Tensor MutableHashTable::lookup(const Operand& keys) const { return find(handle_, keys, default_); }
Tensor MutableHashTable::lookup(const Operand& keys, const Operand& dynamic_default_values) const {
  return find(handle_, keys, dynamic_default_values);
}
int64_t MutableHashTable::size() const { return size_of(handle_); }
TableContents MutableHashTable::export_contents(SourceSite where) const {
  const auto [keys, values] = export_from(handle_, where);
  return {keys, values};
}

}  // namespace lookup
}  // namespace runnel
