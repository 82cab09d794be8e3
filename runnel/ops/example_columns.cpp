#include "runnel/ops/example_columns.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/io/example.h"
#include "runnel/io/origin.h"

namespace runnel {
namespace {

using io::wire::Kind;

Kind kind_of(DType dtype) {
  if (dtype == DType::float32) return Kind::floats;
  return dtype == DType::int64 ? Kind::int64s : Kind::bytes;
}

[[noreturn]] void damaged_list(Kind kind) {
  throw make_error(Code::data_loss, "its list of {} is damaged", kind_name(kind));
}

[[noreturn]] void wrong_kind(Kind kind, DType dtype) {
  throw invalid_argument("it holds {}, not {}", kind_name(kind), kind_name(kind_of(dtype)));
}

inline void check_kind(Kind kind, DType dtype) {
  if (kind != kind_of(dtype)) [[unlikely]]
    wrong_kind(kind, dtype);
}

// Exactly `n` elements into dense memory; returns how many there are.
int64_t read_fixed(DType dtype, std::string_view list, const Tensor& out, int64_t at, int64_t n, const Bytes& owner) {
  if (dtype == DType::float32) return io::wire::read_floats(list, out.mutable_data<float>() + at, n);
  if (dtype == DType::int64) return io::wire::read_int64s(list, out.mutable_data<int64_t>() + at, n);
  int64_t count = 0;
  Bytes* to = out.mutable_data<Bytes>() + at;
  const char* base = owner.view().data();
  const bool whole = io::wire::read_bytes(list, [&](std::string_view v) {
    if (count < n) to[count] = owner.substr(static_cast<size_t>(v.data() - base), v.size());
    ++count;
  });
  return whole ? count : -1;
}

void copy_default(const Tensor& from, const Tensor& to, int64_t at, int64_t n) {
  const int64_t step = from.num_elements() == 1 ? 0 : 1;
  auto copy = [&]<class E>(const E* source) {
    for (int64_t i = 0; i < n; ++i) to.mutable_data<E>()[at + i] = source[i * step];
  };
  if (to.dtype() == DType::float32) copy(from.data<float>());
  if (to.dtype() == DType::int64) copy(from.data<int64_t>());
  if (to.dtype() == DType::string) copy(from.data<Bytes>());
}

// Batches follow each other with the same keys: what one has taught about their order is kept for the next.
io::ExampleLocator& locator_of(const std::vector<std::string_view>& keys) {
  thread_local std::unique_ptr<io::ExampleLocator> last;
  if (last == nullptr || !last->has_keys(keys)) last = std::make_unique<io::ExampleLocator>(keys);
  return *last;
}

// Reads one chunk of rows.
class ChunkReader {
 public:
  ChunkReader(const std::vector<FeaturePlan>& plans, const std::vector<int>& slots,
              const std::vector<std::string_view>& keys, std::vector<Column>& columns)
      : plans_(plans), slots_(slots), locator_(locator_of(keys)), found_(keys.size()), columns_(columns) {}

  void read(int64_t row, const Bytes& record) {
    const Bytes* source = &record;
    Bytes normal;
    if (!locator_.locate(record.view(), found_.data())) [[unlikely]] {
      normal = Bytes(io::Example::parse(record.view()).serialize());
      source = &normal;
      locator_.locate(normal.view(), found_.data());
    }
    for (size_t p = 0; p < plans_.size(); ++p) {
      try {
        read_feature(row, p, *source);
      } catch (const Error& e) {
        throw make_error(e.code(), "feature '{}': {}", plans_[p].key, e.what());
      }
    }
  }

 private:
  void read_feature(int64_t row, size_t p, const Bytes& owner) {
    const FeaturePlan& plan = plans_[p];
    const auto& [kind, list] = found_[static_cast<size_t>(slots_[p])];
    if (plan.elements < 0) {
      Column& column = columns_[p];
      const int64_t n = kind == Kind::none ? 0 : append_list(column, plan.dtype, kind, list, owner);
      column.counts.push_back(n);
      if (n % plan.multiple != 0) {
        throw invalid_argument("it has {} values, which is no multiple of the {} of one step", n, plan.multiple);
      }
      return;
    }
    const int64_t at = row * plan.elements;
    if (kind == Kind::none) {
      if (plan.fallback == nullptr) throw invalid_argument("it is missing and has no default value");
      copy_default(*plan.fallback, plan.dense, at, plan.elements);
      return;
    }
    check_kind(kind, plan.dtype);
    const int64_t n = read_fixed(plan.dtype, list, plan.dense, at, plan.elements, owner);
    if (n < 0) damaged_list(kind);
    if (n != plan.elements) throw invalid_argument("it has {} values, but its shape asks for {}", n, plan.elements);
  }

  const std::vector<FeaturePlan>& plans_;
  const std::vector<int>& slots_;
  io::ExampleLocator& locator_;
  std::vector<io::ExampleLocator::Found> found_;
  std::vector<Column>& columns_;
};

template <class E>
const std::vector<E>& values_of(const Column& c) {
  if constexpr (std::is_same_v<E, float>) {
    return c.floats;
  } else if constexpr (std::is_same_v<E, int64_t>) {
    return c.int64s;
  } else {
    return c.strings;
  }
}

template <class F>
void with_feature_type(DType dtype, F f) {
  if (dtype == DType::float32) return f.template operator()<float>();
  if (dtype == DType::int64) return f.template operator()<int64_t>();
  f.template operator()<Bytes>();
}

}  // namespace

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::none: return "nothing";
    case Kind::bytes: return "strings";
    case Kind::floats: return "floats";
    case Kind::int64s: return "int64s";
  }
  return "nothing";
}

void check_feature_dtype(DType dtype, const char* what) {
  if (dtype == DType::float32 || dtype == DType::int64 || dtype == DType::string) return;
  throw invalid_argument("{} are float32, int64 or string, not {}: cast them afterwards", what, dtype_name(dtype));
}

std::string RecordNames::of(int64_t record) const {
  if (names == nullptr || names->num_elements() == 0) {
    const std::string file = io::origin_of(records[record]);
    return file.empty() ? fmt::format("record {}", record) : fmt::format("record {} ({})", record, file);
  }
  const int64_t i = names->num_elements() == 1 ? 0 : record;
  return fmt::format("record {} ('{}')", record, names->data<Bytes>()[i].view());
}

int64_t append_list(Column& column, DType dtype, Kind kind, std::string_view list, const Bytes& owner) {
  check_kind(kind, dtype);
  auto numbers = [&](auto& values, auto read) {
    const int64_t n = read(list, nullptr, 0);
    if (n < 0) damaged_list(kind);
    const size_t had = values.size();
    values.resize(had + static_cast<size_t>(n));
    read(list, values.data() + had, n);
    return n;
  };
  if (dtype == DType::float32) return numbers(column.floats, io::wire::read_floats);
  if (dtype == DType::int64) return numbers(column.int64s, io::wire::read_int64s);
  const size_t had = column.strings.size();
  const char* base = owner.view().data();
  const bool whole = io::wire::read_bytes(list, [&](std::string_view v) {
    column.strings.push_back(owner.substr(static_cast<size_t>(v.data() - base), v.size()));
  });
  if (!whole) damaged_list(kind);
  return static_cast<int64_t>(column.strings.size() - had);
}

ParsedColumns read_columns(const Bytes* records, int64_t n, const std::vector<FeaturePlan>& plans,
                           const RecordNames& names) {
  // Two features may read the same key.
  std::vector<std::string_view> keys;
  std::vector<int> slots;
  for (const FeaturePlan& plan : plans) {
    const auto it = std::find(keys.begin(), keys.end(), plan.key);
    slots.push_back(static_cast<int>(it - keys.begin()));
    if (it == keys.end()) keys.push_back(plan.key);
  }
  size_t bytes = 0;
  for (int64_t i = 0; i < n; ++i) bytes += records[i].size();
  // Half a megabyte per chunk: less is not worth waking a thread for.
  const int64_t grain = std::max<int64_t>(16, n / static_cast<int64_t>(bytes / (size_t{1} << 19) + 1) + 1);
  ParsedColumns all;
  all.chunks.resize(static_cast<size_t>(n == 0 ? 1 : (n - 1) / grain + 1));
  for (auto& chunk : all.chunks) chunk.resize(plans.size());
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    ChunkReader reader(plans, slots, keys, all.chunks[static_cast<size_t>(begin / grain)]);
    for (int64_t i = begin; i < end; ++i) {
      if (i + 2 < end) __builtin_prefetch(records[i + 2].view().data());
      try {
        reader.read(i, records[i]);
      } catch (const Error& e) {
        throw make_error(e.code(), "{}: {}", names.of(i), e.what());
      }
    }
  });
  return all;
}

int64_t ParsedColumns::total(size_t plan) const {
  int64_t n = 0;
  each_row(plan, [&](int64_t, int64_t count) { n += count; });
  return n;
}

int64_t ParsedColumns::longest(size_t plan) const {
  int64_t n = 0;
  each_row(plan, [&](int64_t, int64_t count) { n = std::max(n, count); });
  return n;
}

Tensor ParsedColumns::values(size_t plan, DType dtype) const {
  Tensor out = Tensor::empty(dtype, Shape{total(plan)});
  with_feature_type(dtype, [&]<class E>() {
    E* to = out.mutable_data<E>();
    for (const auto& chunk : chunks) {
      const std::vector<E>& from = values_of<E>(chunk[plan]);
      to = std::copy(from.begin(), from.end(), to);
    }
  });
  return out;
}

void ParsedColumns::pad_into(size_t plan, int64_t width, const Tensor& pad, const Tensor& out) const {
  with_feature_type(out.dtype(), [&]<class E>() {
    E* to = out.mutable_data<E>();
    const E filler = *pad.data<E>();
    for (const auto& chunk : chunks) {
      const E* from = values_of<E>(chunk[plan]).data();
      for (int64_t count : chunk[plan].counts) {
        to = std::copy(from, from + count, to);
        to = std::fill_n(to, width - count, filler);
        from += count;
      }
    }
  });
}

}  // namespace runnel
