// Tables that are kept in buckets.
#include <algorithm>
#include <bit>
#include <mutex>

#include "runnel/base/format.h"
#include "runnel/base/string_hash.h"
#include "runnel/ops/lookup_table.h"

namespace runnel {
namespace {

constexpr int64_t kFewestBuckets = 4, kMostBuckets = int64_t{1} << 40;

// Where a key stands follows from its hash, and the buckets stand in files: the hashes are TensorFlow's.
uint64_t hash_of_key(int32_t key) { return static_cast<uint64_t>(key); }
uint64_t hash_of_key(int64_t key) { return static_cast<uint64_t>(key); }
uint64_t hash_of_key(const Bytes& key) { return murmur64(key.view(), 0xDECAFCAFFEu); }

template <class K>
uint64_t hash_of_key(const K* key, int64_t width) {
  if (width == 1) return hash_of_key(*key);
  uint64_t hash = 0;
  for (int64_t i = 0; i < width; ++i) {
    hash ^= hash_of_key(key[i]) + 0x9e3779b97f4a7800u + (hash << 10) + (hash >> 4);
  }
  return hash;
}

void check_number_of_buckets(int64_t buckets) {
  if (buckets >= kFewestBuckets && std::has_single_bit(static_cast<uint64_t>(buckets))) return;
  throw invalid_argument("Number of buckets must be at least {} and a power of 2, got: {}", kFewestBuckets, buckets);
}

// Open addressing: a key stands in the bucket of its hash, or in the first free one 1, 3, 6, ... further on. A key that
// is removed leaves the deleted key, for others may stand further on because of it.
template <class K, class V>
class DenseTable : public Table {
 public:
  DenseTable(std::string name, TableType type, const Tensor& empty_key, const Tensor& deleted_key,
             const DenseBuckets& buckets)
      : Table(std::move(name), std::move(type)),
        key_width_(this->type.key_shape.num_elements()),
        value_width_(this->type.value_shape.num_elements()),
        empty_(empty_key.data<K>(), empty_key.data<K>() + key_width_),
        deleted_(deleted_key.data<K>(), deleted_key.data<K>() + key_width_),
        initial_(buckets.initial),
        max_load_factor_(static_cast<float>(buckets.max_load_factor)) {
    if (empty_ == deleted_) throw invalid_argument("Empty and deleted keys cannot be equal");
    now_ = empty_buckets(initial_);
  }

  DenseTable(const DenseTable& other)  // without its entries
      : Table(other.name, other.type),
        key_width_(other.key_width_),
        value_width_(other.value_width_),
        empty_(other.empty_),
        deleted_(other.deleted_),
        initial_(other.initial_),
        max_load_factor_(other.max_load_factor_) {
    now_ = empty_buckets(initial_);
  }
  std::shared_ptr<Table> empty_copy() const override { return std::make_shared<DenseTable>(*this); }

  bool initialize(const Tensor&, const Tensor&) override { return false; }  // only fixed tables are asked
  std::pair<PartialShape, PartialShape> contents_shapes() const override {
    return {PartialShape{kUnknownDim, key_width_}, PartialShape{kUnknownDim, value_width_}};
  }
  void check_contents(const Tensor& keys, const Tensor& values) const override {
    if (keys.dtype() != type.key || values.dtype() != type.value) {
      throw invalid_argument("{} maps {}, got {} and {}", describe(), described(type), dtype_name(keys.dtype()),
                             dtype_name(values.dtype()));
    }
    const bool rows = keys.rank() == 2 && values.rank() == 2 && keys.shape()[0] == values.shape()[0];
    if (!rows || keys.shape()[1] != key_width_ || values.shape()[1] != value_width_) {
      throw invalid_argument("the buckets of {} are keys of shape [n,{}] and values of shape [n,{}], got {} and {}",
                             describe(), key_width_, value_width_, keys.shape().str(), values.shape().str());
    }
    check_number_of_buckets(keys.shape()[0]);
  }

  void replace(const Tensor& keys, const Tensor& values) override {
    Buckets fresh = empty_buckets(keys.shape()[0]);
    std::copy_n(keys.data<K>(), keys.num_elements(), fresh.keys.template mutable_data<K>());
    std::copy_n(values.data<V>(), values.num_elements(), fresh.values.template mutable_data<V>());
    for (int64_t at = 0; at < fresh.count; ++at) fresh.taken += is_free(fresh.key(at, key_width_)) ? 0 : 1;
    const std::lock_guard lock(mutex);
    now_ = std::move(fresh);
  }
  void insert(const Tensor& keys, const Tensor& values) override {
    const int64_t count = number_of_keys(keys);
    refuse_marks(keys, count);
    const std::lock_guard lock(mutex);
    // As if all keys were new, as TensorFlow counts: the number of buckets stands in files.
    const auto wanted = static_cast<float>(now_.taken + count);
    if (wanted > static_cast<float>(now_.count) * max_load_factor_) {
      int64_t buckets = now_.count;
      do {
        buckets *= 2;
        if (buckets > kMostBuckets) {
          throw make_error(Code::resource_exhausted, "{} would need more than {} buckets", describe(), kMostBuckets);
        }
      } while (wanted > static_cast<float>(buckets) * max_load_factor_);
      now_ = with_buckets(buckets);
    }
    for (int64_t i = 0; i < count; ++i) put(now_, keys.data<K>() + i * key_width_, values.data<V>() + i * value_width_);
  }
  void remove(const Tensor& keys) override {
    const int64_t count = number_of_keys(keys, 1);
    refuse_marks(keys, count);
    const std::lock_guard lock(mutex);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = bucket_of(keys.data<K>() + i * key_width_);
      if (at < 0) continue;
      std::copy_n(deleted_.begin(), key_width_, now_.key(at, key_width_));
      --now_.taken;
    }
  }
  void find(const Tensor& keys, const Tensor& missing, const Tensor& out) const override {
    const int64_t count = number_of_keys(keys);
    refuse_marks(keys, count);
    const std::lock_guard lock(mutex);
    V* to = out.mutable_data<V>();
    for (int64_t i = 0; i < count; ++i, to += value_width_) {
      const int64_t at = bucket_of(keys.data<K>() + i * key_width_);
      std::copy_n(at < 0 ? missing.data<V>() : now_.value(at, value_width_), value_width_, to);  // one for all
    }
  }
  int64_t size() const override {
    const std::lock_guard lock(mutex);
    return now_.taken;
  }
  std::pair<Tensor, Tensor> contents() const override {
    const std::lock_guard lock(mutex);
    const Buckets copy = now_.copy();
    return {copy.keys, copy.values};
  }

 private:
  struct Buckets {
    int64_t count = 0;
    int64_t taken = 0;
    Tensor keys, values;  // nobody else has their memory
    K* key(int64_t at, int64_t width) const { return keys.mutable_data<K>() + at * width; }
    V* value(int64_t at, int64_t width) const { return values.mutable_data<V>() + at * width; }
    Buckets copy() const {
      Buckets made{count, taken, Tensor::empty(keys.dtype(), keys.shape()),
                   Tensor::empty(values.dtype(), values.shape())};
      std::copy_n(keys.data<K>(), keys.num_elements(), made.keys.template mutable_data<K>());
      std::copy_n(values.data<V>(), values.num_elements(), made.values.template mutable_data<V>());
      return made;
    }
  };

  Buckets empty_buckets(int64_t count) const {
    check_number_of_buckets(count);
    Buckets made{count, 0, Tensor::empty(type.key, Shape{count, key_width_}),
                 Tensor::empty(type.value, Shape{count, value_width_})};
    for (int64_t at = 0; at < count; ++at) std::copy_n(empty_.begin(), key_width_, made.key(at, key_width_));
    std::fill_n(made.values.template mutable_data<V>(), made.values.num_elements(), V());
    return made;
  }
  Buckets with_buckets(int64_t count) const {
    Buckets made = empty_buckets(count);
    for (int64_t at = 0; at < now_.count; ++at) {
      const K* key = now_.key(at, key_width_);
      if (!is_free(key)) put(made, key, now_.value(at, value_width_));
    }
    return made;
  }

  bool is_empty(const K* key) const { return std::equal(empty_.begin(), empty_.end(), key); }
  bool is_free(const K* key) const { return is_empty(key) || std::equal(deleted_.begin(), deleted_.end(), key); }

  // Keys stand in a list; in TensorFlow one alone may do, but not to be removed.
  int64_t number_of_keys(const Tensor& keys, int fewest_dims = 0) const {
    const int64_t count = keys.rank() == 0 ? 1 : keys.shape()[0];
    if (keys.num_elements() == count * key_width_ && keys.rank() >= fewest_dims) return count;
    throw invalid_argument("{} takes a list of keys of shape {}, got {}", describe(), type.key_shape.str(),
                           keys.shape().str());
  }
  void refuse_marks(const Tensor& keys, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      const K* key = keys.data<K>() + i * key_width_;
      if (!is_free(key)) continue;
      throw invalid_argument("Using the {} as a table key is not allowed: {}, key number {}",
                             is_empty(key) ? "empty_key" : "deleted_key", describe(), i);
    }
  }

  // The buckets where the key may stand, one after the other, until `visit` says true; each comes once.
  template <class F>
  void probe(const Buckets& buckets, const K* key, F visit) const {
    const auto mask = static_cast<uint64_t>(buckets.count - 1);
    uint64_t at = hash_of_key(key, key_width_) & mask;
    for (int64_t probes = 1; probes <= buckets.count; ++probes) {
      if (visit(static_cast<int64_t>(at))) return;
      at = (at + static_cast<uint64_t>(probes)) & mask;
    }
  }
  // Where a key stands; -1 where it does not.
  int64_t bucket_of(const K* key) const {
    int64_t found = -1;
    probe(now_, key, [&](int64_t at) {
      const K* there = now_.key(at, key_width_);
      if (std::equal(key, key + key_width_, there)) found = at;
      return found >= 0 || is_empty(there);
    });
    return found;
  }
  void put(Buckets& to, const K* key, const V* value) const {
    probe(to, key, [&](int64_t at) {
      K* there = to.key(at, key_width_);
      const bool known = std::equal(key, key + key_width_, there);
      if (!known && !is_free(there)) return false;
      if (!known) {
        std::copy_n(key, key_width_, there);
        ++to.taken;
      }
      std::copy_n(value, value_width_, to.value(at, value_width_));
      return true;
    });
  }

  const int64_t key_width_, value_width_;
  const std::vector<K> empty_, deleted_;
  const int64_t initial_;  // as many buckets as it begins with
  const float max_load_factor_;
  Buckets now_;
};

}  // namespace

TableType dense_type(DType value, const PartialShape& value_shape, const Tensor& empty_key) {
  if (!value_shape.is_static() || value_shape.rank() > 1) {
    throw invalid_argument("Empty value must be a scalar or a vector, got shape {}", value_shape.str());
  }
  if (empty_key.rank() > 1) {
    throw invalid_argument("Empty key must be a scalar or a vector, got shape {}", empty_key.shape().str());
  }
  return {.key = empty_key.dtype(),
          .value = value,
          .value_shape = Shape(value_shape),
          .key_shape = empty_key.shape(),
          .dense = true};
}

std::shared_ptr<Table> make_dense_table(const std::string& name, DType value, const PartialShape& value_shape,
                                        const Tensor& empty_key, const Tensor& deleted_key,
                                        const DenseBuckets& buckets) {
  if (!(buckets.max_load_factor > 0 && buckets.max_load_factor < 1)) {
    throw invalid_argument("max_load_factor must be between 0 and 1, got: {}", buckets.max_load_factor);
  }
  const TableType type = dense_type(value, value_shape, empty_key);
  if (!(empty_key.shape() == deleted_key.shape())) {
    throw invalid_argument("Empty and deleted keys must have same shape, got shapes: {} and {}",
                           empty_key.shape().str(), deleted_key.shape().str());
  }
  if (empty_key.dtype() != deleted_key.dtype()) {
    throw invalid_argument("Empty and deleted keys must have one dtype, got {} and {}", dtype_name(empty_key.dtype()),
                           dtype_name(deleted_key.dtype()));
  }
  std::shared_ptr<Table> table;
  key_types.for_each([&]<class K>() {
    if (dtype_of<K> != type.key) return;
    value_types.for_each([&]<class V>() {
      if (dtype_of<V> != type.value) return;
      table = std::make_shared<DenseTable<K, V>>(name, type, empty_key, deleted_key, buckets);
    });
  });
  return table ? table : make_table(name, type);  // which says that there is none of these dtypes
}

}  // namespace runnel
