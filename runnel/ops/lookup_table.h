#pragma once

// What a table handle refers to.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runnel/op/fields.h"
#include "runnel/ops/named_resources.h"
#include "runnel/tensor/tensor.h"
#include "runnel/tensor/trackable.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {

inline constexpr auto key_types = strings_only + Types<int32_t, int64_t>{};

// A hash table. Values are kept in one growing tensor row per key, whatever their dtype.
class Table : public Object, public Trackable {
 public:
  Table(std::string name, DType key, DType value, bool fixed)
      : name(std::move(name)), key_dtype(key), value_dtype(value), fixed(fixed) {}
  std::string describe() const override { return "hash table '" + name + "'"; }

  const std::string name;
  const DType key_dtype, value_dtype;
  const bool fixed;
  mutable std::mutex mutex;
  std::atomic<bool> filled = false;  // a fixed table: its contents are there

  // Of a fixed table, which gets its contents once: false where it has others, of another number.
  virtual bool initialize(const Tensor& keys, const Tensor& values) = 0;
  // These entries in the place of all: nobody sees a part of them.
  virtual void replace(const Tensor& keys, const Tensor& values) = 0;
  virtual void insert(const Tensor& keys, const Tensor& values) = 0;
  virtual void remove(const Tensor& keys) = 0;
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

struct TableExportAttrs {
  DType Tkeys = DType::invalid;
  DType Tvalues = DType::invalid;
  static constexpr auto fields() {
    return field_list(field("Tkeys", &TableExportAttrs::Tkeys), field("Tvalues", &TableExportAttrs::Tvalues));
  }
};

// An empty table; an Error when there are none of these types. A fixed one gets its contents once.
std::shared_ptr<Table> make_table(const std::string& name, DType key, DType value, bool fixed);
Tensor handle_to_table(std::shared_ptr<Table> table);
Table& table_of(const Tensor& handle);
// Are keys and values of the table's dtypes and, where there are two, of one shape?
void check_entries(const Table& table, const Tensor& keys, const Tensor& values);

}  // namespace runnel
