#include "runnel/ops/lookup.h"

#include <mutex>
#include <unordered_map>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/lookup_table.h"
#include "runnel/tensor/handle.h"

namespace runnel {
namespace {

struct StringHash {
  size_t operator()(const Bytes& b) const { return std::hash<std::string_view>()(b); }
};

template <class K, class V>
class TypedTable : public Table {
 public:
  using Table::Table;
  bool initialize(const Tensor& keys, const Tensor& values) override {
    std::lock_guard lock(mutex);
    if (filled) return keys.num_elements() == static_cast<int64_t>(now_.live);
    Contents fresh;
    put(fresh, keys, values, true);
    now_ = std::move(fresh);
    filled = true;
    return true;
  }
  void replace(const Tensor& keys, const Tensor& values) override {
    Contents fresh;
    put(fresh, keys, values, false);
    std::lock_guard lock(mutex);
    std::swap(now_, fresh);
  }
  void insert(const Tensor& keys, const Tensor& values) override {
    std::lock_guard lock(mutex);
    put(now_, keys, values, false);
  }
  void remove(const Tensor& keys) override {
    std::lock_guard lock(mutex);
    for (int64_t i = 0; i < keys.num_elements(); ++i) {
      const auto it = now_.map.find(keys.data<K>()[i]);
      if (it == now_.map.end()) continue;
      now_.order[it->second].live = false;
      now_.map.erase(it);
      --now_.live;
    }
    if (now_.order.size() > 2 * now_.live + 16) compact();
  }
  void find(const Tensor& keys, const Tensor& missing, const Tensor& out) const override {
    std::lock_guard lock(mutex);
    const bool one = fixed || missing.num_elements() == 1;
    for (int64_t i = 0; i < keys.num_elements(); ++i) {
      const auto it = now_.map.find(keys.data<K>()[i]);
      out.mutable_data<V>()[i] = it != now_.map.end() ? now_.order[it->second].value : missing.data<V>()[one ? 0 : i];
    }
  }
  int64_t size() const override {
    std::lock_guard lock(mutex);
    return static_cast<int64_t>(now_.live);
  }
  std::pair<Tensor, Tensor> contents() const override {
    std::lock_guard lock(mutex);
    const Shape shape{static_cast<int64_t>(now_.live)};
    Tensor keys = Tensor::empty(dtype_of<K>, shape);
    Tensor values = Tensor::empty(dtype_of<V>, shape);
    int64_t i = 0;
    for (const Row& row : now_.order) {
      if (!row.live) continue;
      keys.mutable_data<K>()[i] = row.key;
      values.mutable_data<V>()[i++] = row.value;
    }
    return {keys, values};
  }

 private:
  struct Row {
    K key;
    V value;
    bool live;
  };
  using Hash = std::conditional_t<std::is_same_v<K, Bytes>, StringHash, std::hash<K>>;
  struct Contents {
    std::unordered_map<K, size_t, Hash> map;
    std::vector<Row> order;
    size_t live = 0;
  };

  void put(Contents& to, const Tensor& keys, const Tensor& values, bool refuse_change) const {
    for (int64_t i = 0; i < keys.num_elements(); ++i) {
      const K& key = keys.data<K>()[i];
      const V& value = values.data<V>()[i];
      const auto [it, fresh] = to.map.try_emplace(key, to.order.size());
      if (fresh) {
        try {
          to.order.push_back({key, value, true});
        } catch (...) {
          to.map.erase(it);  // no key without a row, whatever memory there is
          throw;
        }
        ++to.live;
      } else if (refuse_change && !(to.order[it->second].value == value)) {
        throw invalid_argument("{} is given two values for key number {}", describe(), i);
      } else {
        to.order[it->second].value = value;
      }
    }
  }
  void compact() {
    std::erase_if(now_.order, [](const Row& row) { return !row.live; });
    for (size_t i = 0; i < now_.order.size(); ++i) now_.map[now_.order[i].key] = i;
  }

  Contents now_;
};

}  // namespace

// The contents of a fixed table are part of the program.
std::vector<SavableValue> Table::savable_values() {
  if (fixed) return {};
  const auto get = [this] {
    auto [keys, values] = contents();
    return std::vector<Tensor>{keys, values};
  };
  const auto check = [this](const std::vector<Tensor>& saved) {
    const Tensor &keys = saved.at(0), &values = saved.at(1);
    if (keys.dtype() != key_dtype || values.dtype() != value_dtype || !(keys.shape() == values.shape())) {
      throw invalid_argument("{} maps {} to {}, the saved keys are {}{}, the values {}{}", describe(),
                             dtype_name(key_dtype), dtype_name(value_dtype), dtype_name(keys.dtype()),
                             keys.shape().str(), dtype_name(values.dtype()), values.shape().str());
    }
  };
  const auto set = [this](const std::vector<Tensor>& saved) { replace(saved.at(0), saved.at(1)); };
  return {{.name = "table", .suffixes = {"-keys", "-values"}, .get = get, .check = check, .set = set}};
}

std::shared_ptr<Table> make_table(const std::string& name, DType key, DType value, bool fixed) {
  std::shared_ptr<Table> table;
  key_types.for_each([&]<class K>() {
    if (dtype_of<K> != key) return;
    (Types<int32_t, int64_t, float, double, bool, Bytes>{}).for_each([&]<class V>() {
      if (dtype_of<V> == value) table = std::make_shared<TypedTable<K, V>>(name, key, value, fixed);
    });
  });
  if (!table) {
    throw invalid_argument(
        "[hash table] no table from {} to {}: keys are string, int32 or int64; values int32, int64, "
        "float32, float64, bool or string",
        dtype_name(key), dtype_name(value));
  }
  return table;
}

Tensor handle_to_table(std::shared_ptr<Table> table) {
  Tensor handle = Tensor::empty(DType::resource, {});
  handle.mutable_data<ResourceHandle>()->object = std::move(table);
  return handle;
}

Table& table_of(const Tensor& handle) {
  auto* table = referred_as<Table>(handle);
  if (!table) throw invalid_argument("the resource is no hash table");
  return *table;
}

namespace {

void require_dtype(const Table& table, const char* what, DType expected, DType got) {
  if (expected != got) {
    throw invalid_argument("{} has {} of dtype {}, got {}", table.describe(), what, dtype_name(expected),
                           dtype_name(got));
  }
}

}  // namespace

void check_entries(const Table& table, const Tensor& keys, const Tensor& values) {
  require_dtype(table, "keys", table.key_dtype, keys.dtype());
  require_dtype(table, "values", table.value_dtype, values.dtype());
  if (!(keys.shape() == values.shape())) {
    throw invalid_argument("keys and values must have one shape, got {} and {}", keys.shape().str(),
                           values.shape().str());
  }
}

void register_lookup(Registry& r) {
  r.define("LookupTableFindV2")
      .in("table_handle", DType::resource)
      .type("Tin", key_types)
      .in("keys", "Tin")
      .type("Tout", data_types)
      .in("default_value", "Tout")
      .out("values", "Tout")
      .shape([](InferContext& c) { c.output(c.input(1)); })
      .cpu([](KernelContext& c) {
        const Table& table = table_of(c.in(0));
        require_dtype(table, "keys", table.key_dtype, c.in(1).dtype());
        require_dtype(table, "values", table.value_dtype, c.in(2).dtype());
        if (c.in(2).rank() != 0 && !(c.in(2).shape() == c.in(1).shape())) {
          throw invalid_argument("default_value must be a scalar or have the shape of the keys");
        }
        if (table.fixed && !table.filled) {
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
        if (table.fixed) {
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
        require_dtype(table, "keys", table.key_dtype, c.in(1).dtype());
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
}

namespace lookup {
namespace {

Tensor find(const Tensor& handle, const Operand& keys, const Tensor& default_value) {
  static const Op op("LookupTableFindV2");
  return op({handle, keys, default_value});
}

Tensor value_in(const Operand& x, DType dtype) {
  return composed(x.where(), [&] { return x.is_literal() ? x.as(dtype) : *x.tensor(); });
}

Tensor table_handle(const std::string& name, DType keys, DType values, bool fixed, const SourceSite& where) {
  return composed(where, [&] { return handle_to_table(make_table(name, keys, values, fixed)); });
}

int64_t size_of(const Tensor& handle) {
  static const Op op("LookupTableSizeV2");
  return op({handle}).item<int64_t>();
}

void fill(const Tensor& handle, const Operand& keys, const Operand& values) {
  static const Op op("InitializeTableV2");
  op.many({handle, keys, values});
}

void insert_into(const Tensor& handle, const Operand& keys, const Operand& values) {
  static const Op op("LookupTableInsertV2");
  op.many({handle, keys, values});
}

}  // namespace

StaticHashTable::StaticHashTable(const Operand& keys, const Operand& values, const Operand& default_value,
                                 const std::string& name)
    : handle_(table_handle(name, keys.natural_dtype(), values.natural_dtype(), true, keys.where())),
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
    : handle_(table_handle(name, key_dtype, value_dtype, false, default_value.where())),
      default_(value_in(default_value, value_dtype)) {}
void MutableHashTable::insert(const Operand& keys, const Operand& values) { insert_into(handle_, keys, values); }
void MutableHashTable::remove(const Operand& keys) {
  static const Op op("LookupTableRemoveV2");
  op.many({handle_, keys});
}
Tensor MutableHashTable::lookup(const Operand& keys) const { return find(handle_, keys, default_); }
int64_t MutableHashTable::size() const { return size_of(handle_); }
MutableHashTable::Contents MutableHashTable::export_contents(SourceSite where) const {
  static const Op<TableExportAttrs> op("LookupTableExportV2");
  const Table& table = table_of(handle_);
  const auto parts = op.many({handle_}, {.Tkeys = table.key_dtype, .Tvalues = table.value_dtype}, &where);
  return {parts[0], parts[1]};
}

}  // namespace lookup
}  // namespace runnel
