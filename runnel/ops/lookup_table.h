#pragma once

// What a table handle refers to.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runnel/base/function_ref.h"
#include "runnel/op/fields.h"
#include "runnel/op/operand.h"
#include "runnel/ops/named_resources.h"
#include "runnel/tensor/tensor.h"
#include "runnel/tensor/trackable.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

inline constexpr auto key_types = strings_only + Types<int32_t, int64_t>{};
inline constexpr auto value_types = Types<int32_t, int64_t, float, double, bool, Bytes>{};

// What a table is of.
struct TableType {
  DType key = DType::invalid, value = DType::invalid;
  bool fixed = false;      // gets its contents once
  Shape value_shape = {};  // of one value
  Shape key_shape = {};    // of one key
  bool dense = false;      // kept in buckets, which are its contents
  friend bool operator==(const TableType&, const TableType&) = default;
};

// A hash table, whatever its dtypes. Several threads may use it.
class Table : public Object, public Trackable {
 public:
  Table(std::string name, TableType type) : name(std::move(name)), type(std::move(type)) {}
  std::string describe() const override { return "hash table '" + name + "'"; }

  const std::string name;
  const TableType type;
  mutable std::mutex mutex;
  std::atomic<bool> filled = false;  // a fixed table: its contents are there

  // The shape of the values of such keys. An Error where the keys are not of key_shape.
  PartialShape values_for(const PartialShape& keys) const;
  // The contents as far as their shapes are known: their number is not.
  virtual std::pair<PartialShape, PartialShape> contents_shapes() const;
  // Could these be the contents of this table, as contents() gives them? An Error where they are none.
  virtual void check_contents(const Tensor& keys, const Tensor& values) const;

  // Another table of that name and type.
  virtual std::shared_ptr<Table> empty_copy() const;
  // Of a fixed table, which gets its contents once: false where it has others, of another number.
  virtual bool initialize(const Tensor& keys, const Tensor& values) = 0;
  // These contents in the place of all: nobody sees a part of them.
  virtual void replace(const Tensor& keys, const Tensor& values) = 0;
  virtual void insert(const Tensor& keys, const Tensor& values) = 0;
  virtual void remove(const Tensor& keys) = 0;
  // `missing`: one value, or one for each key.
  virtual void find(const Tensor& keys, const Tensor& missing, const Tensor& out) const = 0;
  virtual int64_t size() const = 0;
  virtual std::pair<Tensor, Tensor> contents() const = 0;

  std::vector<SavableValue> savable_values() override;
};

// Of the ops that make tables by name.
struct TableAttrs {
  std::string container;
  std::string shared_name;
  bool use_node_name_sharing = false;
  DType key_dtype = DType::invalid;
  DType value_dtype = DType::invalid;
  ResourceHome home;
  static constexpr auto fields() {
    using A = TableAttrs;
    return field_list(field("container", &A::container), field("shared_name", &A::shared_name),
                      field("use_node_name_sharing", &A::use_node_name_sharing), field("key_dtype", &A::key_dtype),
                      field("value_dtype", &A::value_dtype));
  }
};

// The same with values that are vectors.
struct TensorTableAttrs : TableAttrs {
  PartialShape value_shape = {};
  static constexpr auto fields() {
    return joined_fields(TableAttrs::fields(), field_list(field("value_shape", &TensorTableAttrs::value_shape)));
  }
};

// How a dense table keeps its keys.
struct DenseBuckets {
  int64_t initial = 131072;      // a power of two
  double max_load_factor = 0.8;  // there are more of them as soon as more than this part is taken
};

// "string to int64[2]".
std::string described(const TableType& type);
// An empty table that is not dense; an Error when there are none of this type.
std::shared_ptr<Table> make_table(const std::string& name, const TableType& type);
// The type of one that is dense.
TableType dense_type(DType value, const PartialShape& value_shape, const Tensor& empty_key);
// One that is dense. Neither of the two keys may be a key of it.
std::shared_ptr<Table> make_dense_table(const std::string& name, DType value, const PartialShape& value_shape,
                                        const Tensor& empty_key, const Tensor& deleted_key,
                                        const DenseBuckets& buckets);
// The table of those names, or of the node; another type than `type` is an Error.
std::shared_ptr<Table> find_or_make_table(const TableAttrs& attrs, const TableType& type, const std::string& kind,
                                          FunctionRef<std::shared_ptr<Table>(const std::string& name)> make);
Tensor handle_to_table(std::shared_ptr<Table> table);
Table& table_of(const Tensor& handle);
// Are keys and values of the table's dtypes and, where there are two, are their shapes those of a table of its type?
void check_entries(const Table& table, const Tensor& keys, const Tensor& values);
void check_keys(const Table& table, const Tensor& keys);
void require_dtype(const Table& table, const char* what, DType expected, DType got);

// The functions of tables that can change, for the classes that users have (ops/lookup.h).
namespace lookup {
Tensor find(const Tensor& handle, const Operand& keys, const Operand& default_value);
Tensor value_in(const Operand& x, DType dtype);
void insert_into(const Tensor& handle, const Operand& keys, const Operand& values);
void remove_from(const Tensor& handle, const Operand& keys);
int64_t size_of(const Tensor& handle);
std::pair<Tensor, Tensor> export_from(const Tensor& handle, const SourceSite& where);
}  // namespace lookup

}  // namespace runnel
