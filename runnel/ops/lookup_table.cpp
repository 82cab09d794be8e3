// What a table holds and how it is saved.
#include "runnel/ops/lookup_table.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/tensor/handle.h"

namespace runnel {
namespace {

struct StringHash {
  size_t operator()(const Bytes& b) const { return std::hash<std::string_view>()(b); }
};

// Keys are scalars. The rows stand in the order of insertion.
template <class K, class V>
class TypedTable : public Table {
 public:
  TypedTable(std::string name, TableType type)
      : Table(std::move(name), std::move(type)), width_(this->type.value_shape.num_elements()) {}
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
    const bool one = type.fixed || missing.num_elements() == width_;
    const V* otherwise = missing.data<V>();
    V* to = out.mutable_data<V>();
    for (int64_t i = 0; i < keys.num_elements(); ++i, to += width_) {
      const auto it = now_.map.find(keys.data<K>()[i]);
      if (it == now_.map.end()) {
        std::copy_n(otherwise + (one ? 0 : i * width_), width_, to);
      } else {
        std::copy_n(cells(now_, it->second), width_, to);
      }
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
    Tensor values = Tensor::empty(dtype_of<V>, Shape(values_for(shape)));
    K* key = keys.mutable_data<K>();
    V* value = values.mutable_data<V>();
    for (size_t row = 0; row < now_.order.size(); ++row) {
      if (!now_.order[row].live) continue;
      *key++ = now_.order[row].key;
      value = std::copy_n(cells(now_, row), width_, value);
    }
    return {keys, values};
  }

 private:
  struct Row {
    K key;
    bool live;
  };
  using Hash = std::conditional_t<std::is_same_v<K, Bytes>, StringHash, std::hash<K>>;
  using Cell = std::conditional_t<std::is_same_v<V, bool>, uint8_t, V>;  // a vector of bools has no elements in memory
  struct Contents {
    std::unordered_map<K, size_t, Hash> map;
    std::vector<Row> order;
    std::vector<Cell> cells;  // width_ of each row
    size_t live = 0;
  };
  auto cells(const Contents& of, size_t row) const {
    return of.cells.begin() + static_cast<std::ptrdiff_t>(row) * static_cast<std::ptrdiff_t>(width_);
  }
  auto cells(Contents& of, size_t row) const {
    return of.cells.begin() + static_cast<std::ptrdiff_t>(row) * static_cast<std::ptrdiff_t>(width_);
  }

  void put(Contents& to, const Tensor& keys, const Tensor& values, bool refuse_change) const {
    const V* value = values.data<V>();
    for (int64_t i = 0; i < keys.num_elements(); ++i, value += width_) {
      const K& key = keys.data<K>()[i];
      const auto [it, fresh] = to.map.try_emplace(key, to.order.size());
      if (fresh) {
        const size_t num_cells = to.cells.size();
        try {
          to.cells.insert(to.cells.end(), value, value + width_);
          to.order.push_back({key, true});
        } catch (...) {
          to.cells.resize(num_cells);
          to.map.erase(it);  // no key without a row, whatever memory there is
          throw;
        }
        ++to.live;
      } else if (refuse_change && !std::equal(value, value + width_, cells(to, it->second))) {
        throw invalid_argument("{} is given two values for key number {}", describe(), i);
      } else {
        std::copy_n(value, width_, cells(to, it->second));
      }
    }
  }
  void compact() {
    size_t kept = 0;
    for (size_t row = 0; row < now_.order.size(); ++row) {
      if (!now_.order[row].live) continue;
      if (kept != row) {
        now_.order[kept] = std::move(now_.order[row]);
        std::move(cells(now_, row), cells(now_, row + 1), cells(now_, kept));
      }
      now_.map[now_.order[kept].key] = kept;
      ++kept;
    }
    now_.order.resize(kept);
    now_.cells.erase(cells(now_, kept), now_.cells.end());
  }

  const int64_t width_;
  Contents now_;
};

}  // namespace

PartialShape Table::values_for(const PartialShape& keys) const {
  if (!keys.has_rank()) return PartialShape::unknown();
  const Dims& dims = keys.dims();
  const size_t own = type.key_shape.dims().size();
  const bool ends_so =
      dims.size() >= own && std::equal(type.key_shape.begin(), type.key_shape.end(), dims.end() - own,
                                       [](int64_t wanted, int64_t d) { return d == wanted || d == kUnknownDim; });
  if (!ends_so) {
    throw invalid_argument("{} has keys of shape {}, the shape of these does not end so: {}", describe(),
                           type.key_shape.str(), keys.str());
  }
  Dims all(dims.begin(), dims.end() - own);
  for (const int64_t d : type.value_shape) all.push_back(d);
  return PartialShape(all);
}

std::pair<PartialShape, PartialShape> Table::contents_shapes() const {
  const PartialShape keys{kUnknownDim};
  return {keys, values_for(keys)};
}

std::shared_ptr<Table> Table::empty_copy() const { return make_table(name, type); }

void Table::check_contents(const Tensor& keys, const Tensor& values) const { check_entries(*this, keys, values); }

// The contents of a fixed table are part of the program.
std::vector<SavableValue> Table::savable_values() {
  if (type.fixed) return {};
  const auto get = [this] {
    auto [keys, values] = contents();
    return std::vector<Tensor>{keys, values};
  };
  const auto check = [this](const std::vector<Tensor>& saved) {
    const Tensor &keys = saved.at(0), &values = saved.at(1);
    try {
      check_contents(keys, values);
    } catch (const Error& error) {
      throw invalid_argument("{} maps {}, the saved keys are {}{}, the values {}{}: {}", describe(), described(type),
                             dtype_name(keys.dtype()), keys.shape().str(), dtype_name(values.dtype()),
                             values.shape().str(), error.what());
    }
  };
  const auto set = [this](const std::vector<Tensor>& saved) { replace(saved.at(0), saved.at(1)); };
  return {{.name = "table", .suffixes = {"-keys", "-values"}, .get = get, .check = check, .set = set}};
}

std::string described(const TableType& type) {
  const auto shown = [](DType dtype, const Shape& shape) {
    return dtype_name(dtype) + (shape.rank() == 0 ? "" : shape.str());
  };
  return shown(type.key, type.key_shape) + " to " + shown(type.value, type.value_shape);
}

std::shared_ptr<Table> make_table(const std::string& name, const TableType& type) {
  std::shared_ptr<Table> table;
  key_types.for_each([&]<class K>() {
    if (dtype_of<K> != type.key) return;
    value_types.for_each([&]<class V>() {
      if (dtype_of<V> == type.value) table = std::make_shared<TypedTable<K, V>>(name, type);
    });
  });
  if (!table) {
    throw invalid_argument(
        "[hash table] no table from {} to {}: keys are string, int32 or int64; values int32, int64, "
        "float32, float64, bool or string",
        dtype_name(type.key), dtype_name(type.value));
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

void require_dtype(const Table& table, const char* what, DType expected, DType got) {
  if (expected != got) {
    throw invalid_argument("{} has {} of dtype {}, got {}", table.describe(), what, dtype_name(expected),
                           dtype_name(got));
  }
}

void check_keys(const Table& table, const Tensor& keys) {
  require_dtype(table, "keys", table.type.key, keys.dtype());
  (void)table.values_for(keys.shape());
}

void check_entries(const Table& table, const Tensor& keys, const Tensor& values) {
  check_keys(table, keys);
  require_dtype(table, "values", table.type.value, values.dtype());
  const PartialShape wanted = table.values_for(keys.shape());
  if (values.shape() == wanted) return;
  if (table.type.value_shape.rank() == 0 && table.type.key_shape.rank() == 0) {
    throw invalid_argument("keys and values must have one shape, got {} and {}", keys.shape().str(),
                           values.shape().str());
  }
  throw invalid_argument("{} maps {}: to keys of shape {} belong values of shape {}, got {}", table.describe(),
                         described(table.type), keys.shape().str(), wanted.str(), values.shape().str());
}

}  // namespace runnel
