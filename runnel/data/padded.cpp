// Batches of elements that differ in shape, and batches taken apart: padded_batch, ragged_batch, unbatch, rebatch.
#include <complex>
#include <deque>

#include "runnel/base/format.h"
#include "runnel/data/input_log.h"
#include "runnel/data/nodes.h"

namespace runnel::data {
namespace {

// Copies `from` into the corner of the row that begins at element `at` of `to`, whose row has the shape `row`.
template <class T>
void copy_corner(const T* from, const Dims& shape, T* to, const Dims& row, size_t axis = 0) {
  if (axis == shape.size()) {
    *to = *from;
    return;
  }
  int64_t inner_from = 1, inner_to = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) {
    inner_from *= shape[d];
    inner_to *= row[d];
  }
  if (axis + 1 == shape.size()) {
    std::copy_n(from, shape[axis], to);
    return;
  }
  for (int64_t i = 0; i < shape[axis]; ++i) copy_corner(from + i * inner_from, shape, to + i * inner_to, row, axis + 1);
}

template <class F>
void with_element_type(DType dtype, const F& f) {
  if (dtype == DType::string) return f(Bytes());
  switch (dtype_size(dtype)) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(std::complex<double>{});
  }
}

Tensor pad_and_stack(const std::vector<Tensor>& rows, const PartialShape& wanted, const Tensor& padding,
                     const std::string& path) {
  const int rank = rows[0].rank();
  if (wanted.has_rank() && wanted.rank() != rank) {
    throw invalid_argument("[padded_batch] padded_shapes{} is {}, the elements have shape {}", path, wanted.str(),
                           rows[0].shape().str());
  }
  Dims row(static_cast<size_t>(rank), 0);
  for (int d = 0; d < rank; ++d) {
    auto& size = row[static_cast<size_t>(d)];
    for (const Tensor& t : rows) {
      if (t.rank() != rank || t.dtype() != rows[0].dtype()) {
        throw invalid_argument("[padded_batch] elements{} of one batch are {}{} and {}{}", path,
                               dtype_name(rows[0].dtype()), rows[0].shape().str(), dtype_name(t.dtype()),
                               t.shape().str());
      }
      size = std::max(size, t.dim(d));
    }
    if (wanted.has_rank() && wanted[d] != kUnknownDim) {
      if (size > wanted[d]) {
        throw invalid_argument("[padded_batch] an element{} has {} elements in dimension {}, padded_shapes allows {}",
                               path, size, d, wanted[d]);
      }
      size = wanted[d];
    }
  }
  Dims dims;
  dims.push_back(static_cast<int64_t>(rows.size()));
  dims.append(row.begin(), row.end());
  const DType dtype = rows[0].dtype();
  if (padding.defined() && (padding.dtype() != dtype || padding.num_elements() != 1)) {
    throw invalid_argument("[padded_batch] the padding value{} is {}{}, the elements are {}", path,
                           dtype_name(padding.dtype()), padding.shape().str(), dtype_name(dtype));
  }
  if (!is_plain(dtype) && dtype != DType::string)
    throw invalid_argument("[padded_batch] {} cannot be padded", dtype_name(dtype));
  const Tensor out = Tensor::empty(dtype, Shape(dims));
  int64_t row_elements = 1;
  for (const int64_t d : row) row_elements *= d;
  with_element_type(dtype, [&](auto sample) {
    using T = decltype(sample);
    T* to = out.mutable_data<T>();
    std::fill_n(to, out.num_elements(), padding.defined() ? *padding.data<T>() : T{});
    for (size_t k = 0; k < rows.size(); ++k) {
      copy_corner(rows[k].data<T>(), rows[k].shape().dims(), to + static_cast<int64_t>(k) * row_elements, row);
    }
  });
  return out;
}

// Lays elements end to end along their first dimension.
Tensor join_rows(const std::vector<Tensor>& rows) {
  Dims dims = rows[0].shape().dims();
  int64_t total = 0;
  for (const Tensor& t : rows) {
    if (t.rank() != rows[0].rank() || !std::equal(t.shape().begin() + 1, t.shape().end(), dims.begin() + 1) ||
        t.dtype() != rows[0].dtype()) {
      throw invalid_argument(
          "[ragged_batch] elements of one batch are {}{} and {}{}: only the first dimension may differ",
          dtype_name(rows[0].dtype()), rows[0].shape().str(), dtype_name(t.dtype()), t.shape().str());
    }
    total += t.dim(0);
  }
  dims[0] = total;
  const Tensor out = Tensor::empty(rows[0].dtype(), Shape(dims));
  with_element_type(out.dtype(), [&](auto sample) {
    using T = decltype(sample);
    T* to = out.mutable_data<T>();
    for (const Tensor& t : rows) to = std::copy_n(t.data<T>(), t.num_elements(), to);
  });
  return out;
}

using Combine = std::function<void(std::vector<Item>& items, Item& out)>;

// Batches made by a rule of their own.
class CombineNode : public DatasetNode {
 public:
  CombineNode(NodePtr input, const char* name, std::string details, int64_t batch, bool drop, Combine combine,
              std::function<ElementSpec(const ElementSpec&, int64_t)> spec)
      : DatasetNode({std::move(input)}),
        name_(name),
        details_(std::move(details)),
        batch_(batch),
        drop_(drop),
        combine_(std::make_shared<Combine>(std::move(combine))),
        spec_(std::move(spec)) {}
  std::string name() const override { return name_; }
  std::string details() const override { return details_; }
  ElementSpec element_spec() const override { return spec_(input()->element_spec(), drop_ ? batch_ : kUnknownDim); }
  int64_t cardinality() const override {
    const int64_t n = input()->cardinality();
    return n < 0 ? n : drop_ ? n / batch_ : (n + batch_ - 1) / batch_;
  }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : IteratorNode {
      IteratorPtr input;
      int64_t batch = 1;
      bool drop = false;
      std::shared_ptr<const Combine> combine;
      std::exception_ptr error;
      bool produce(Item& out) override {
        if (error) std::rethrow_exception(std::exchange(error, nullptr));
        std::vector<Item> items;
        try {
          for (Item item; static_cast<int64_t>(items.size()) < batch && input->next(item);)
            items.push_back(std::move(item));
        } catch (...) {
          if (items.empty() || drop) throw;
          error = std::current_exception();  // what was read before it is delivered first
        }
        if (items.empty() || (drop && static_cast<int64_t>(items.size()) < batch)) return false;
        (*combine)(items, out);
        return true;
      }
      void save(StateWriter& out) const override { save_nested(*input, out); }
      void restore(StateReader& in) override {
        error = nullptr;
        restore_nested(*input, in);
      }
    };
    auto it = std::make_unique<It>();
    it->input = input()->iterate(ctx);
    it->batch = batch_;
    it->drop = drop_;
    it->combine = combine_;
    return it;
  }

 private:
  const char* name_;
  std::string details_;
  int64_t batch_;
  bool drop_;
  std::shared_ptr<const Combine> combine_;
  std::function<ElementSpec(const ElementSpec&, int64_t)> spec_;
};

std::vector<Tensor> column(const std::vector<Item>& items, size_t k) {
  std::vector<Tensor> all;
  for (const Item& item : items) {
    if (item.structure != items[0].structure) detail::wrong_structure(items[0].structure, item.structure);
    all.push_back(item.tensors[k].to_host());
  }
  return all;
}

// Rows of batches, one by one or in batches of another size. What is left of a batch is read again after a restore.
class RowsNode : public DatasetNode {
 public:
  RowsNode(NodePtr input, int64_t batch, bool drop) : DatasetNode({std::move(input)}), batch_(batch), drop_(drop) {}
  std::string name() const override { return batch_ == 0 ? "Unbatch" : "Rebatch"; }
  std::string details() const override { return batch_ == 0 ? "" : fmt::format("{}", batch_); }
  ElementSpec element_spec() const override {
    return nest::map_structure(
        [&](const TensorSpec& s) {
          if (!s.shape.has_rank() || s.shape.rank() == 0) return TensorSpec{PartialShape::unknown(), s.dtype, s.name};
          Dims dims(s.shape.begin() + 1, s.shape.end());
          if (batch_ > 0) dims.insert(dims.begin(), drop_ ? batch_ : kUnknownDim);
          return TensorSpec{PartialShape(dims), s.dtype, s.name};
        },
        input()->element_spec());
  }
  int64_t cardinality() const override {
    const int64_t n = input()->cardinality();
    if (n == 0 || n == INFINITE_CARDINALITY) return n;
    const ElementSpec spec = input()->element_spec();
    const std::vector<TensorSpec> leaves = nest::flatten(spec);
    if (n < 0 || leaves.empty() || !leaves[0].shape.has_rank() || leaves[0].shape.rank() == 0 ||
        leaves[0].shape[0] < 0) {
      return UNKNOWN_CARDINALITY;
    }
    const int64_t rows = n * leaves[0].shape[0];
    return batch_ == 0 ? rows : drop_ ? rows / batch_ : (rows + batch_ - 1) / batch_;
  }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : IteratorNode {
      int64_t batch;
      bool drop;
      std::deque<std::pair<int64_t, Item>> items;  // number in the input, batch
      int64_t row = 0;                             // of the first
      InputLog input;
      It(IteratorPtr in, int64_t batch, bool drop)
          : batch(batch),
            drop(drop),
            input(std::move(in), 1, [this] { return items.empty() ? input.pulled() : items.front().first; }) {}
      static int64_t rows_of(const Item& item) {
        int64_t rows = -1;
        for (const Tensor& t : item.tensors) {
          if (t.rank() == 0) throw invalid_argument("[unbatch] an element has a scalar, which has no rows");
          if (rows >= 0 && t.dim(0) != rows) {
            throw invalid_argument("[unbatch] the components of an element have {} and {} rows", rows, t.dim(0));
          }
          rows = t.dim(0);
        }
        return rows;
      }
      bool pull() {
        Item item;
        if (!input.pull(item)) return false;
        for (Tensor& t : item.tensors) t = t.to_host();
        rows_of(item);
        items.emplace_back(input.pulled() - 1, std::move(item));
        return true;
      }
      bool produce(Item& out) override {
        if (batch == 0) {
          while (true) {
            if (items.empty() && !pull()) return false;
            const Item& first = items.front().second;
            if (row == rows_of(first)) {
              items.pop_front();
              row = 0;
              continue;
            }
            out.structure = first.structure;
            out.tensors.clear();
            for (const Tensor& t : first.tensors) out.tensors.push_back(row_of(t, row));
            ++row;
            return true;
          }
        }
        int64_t have = -row;
        for (const auto& [number, item] : items) have += rows_of(item);
        while (have < batch && pull()) have += rows_of(items.back().second);
        if (have == 0 || (drop && have < batch)) return false;
        int64_t need = std::min(have, batch);
        std::vector<Item> parts;
        while (need > 0) {
          const Item& first = items.front().second;
          const int64_t n = std::min(need, rows_of(first) - row);
          Item part;
          part.structure = first.structure;
          for (const Tensor& t : first.tensors) part.tensors.push_back(t.rows(row, row + n));
          if (n > 0) parts.push_back(std::move(part));
          need -= n;
          row += n;
          if (row == rows_of(first)) {
            items.pop_front();
            row = 0;
          }
        }
        out.structure = parts[0].structure;
        out.tensors.clear();
        for (size_t k = 0; k < parts[0].tensors.size(); ++k) {
          out.tensors.push_back(parts.size() == 1 ? parts[0].tensors[k] : join_rows(column(parts, k)));
        }
        return true;
      }
      void save(StateWriter& out) const override {
        out.integer(static_cast<uint64_t>(row));
        out.integer(items.size());
        input.save(out);
      }
      void restore(StateReader& in) override {
        row = in.count();
        const auto n = static_cast<size_t>(in.count());
        items.clear();
        input.restore(in, [&](int64_t number, Item& item) { items.emplace_back(number, std::move(item)); });
        while (items.size() > n) items.pop_front();
      }
    };
    return std::make_unique<It>(input()->iterate(ctx), batch_, drop_);
  }

 private:
  int64_t batch_;
  bool drop_;
};

}  // namespace

NodePtr nodes::padded_batch(NodePtr input, int64_t size, PaddedBatchOptions options) {
  if (size < 1) throw invalid_argument("[padded_batch] the batch size is {}, not positive", size);
  const auto combine = [options](std::vector<Item>& items, Item& out) {
    const size_t leaves = items[0].tensors.size();
    const auto check = [&](size_t n, const char* what) {
      if (n != 0 && n != leaves)
        throw invalid_argument("[padded_batch] {} {} for elements of {} tensors", n, what, leaves);
    };
    check(options.padded_shapes.size(), "padded shapes");
    check(options.padding_values.size(), "padding values");
    out.structure = items[0].structure;
    out.tensors.clear();
    const std::vector<std::string> paths = nest::paths(items[0].structure->nest);
    for (size_t k = 0; k < leaves; ++k) {
      out.tensors.push_back(pad_and_stack(
          column(items, k), options.padded_shapes.empty() ? PartialShape::unknown() : options.padded_shapes[k],
          options.padding_values.empty() ? Tensor() : options.padding_values[k], paths[k]));
    }
  };
  const auto spec = [options](const ElementSpec& in, int64_t batch) {
    size_t k = 0;
    return nest::map_structure(
        [&](const TensorSpec& s) {
          const PartialShape wanted =
              k < options.padded_shapes.size() ? options.padded_shapes[k] : PartialShape::unknown();
          ++k;
          const PartialShape& shape = wanted.has_rank() ? wanted : s.shape;
          if (!shape.has_rank()) return s;
          Dims dims = shape.dims();
          dims.insert(dims.begin(), batch);
          return TensorSpec{PartialShape(dims), s.dtype, s.name};
        },
        in);
  };
  return std::make_shared<CombineNode>(std::move(input), "PaddedBatch", fmt::format("{}", size), size,
                                       options.drop_remainder, combine, spec);
}

NodePtr nodes::ragged_batch(NodePtr input, int64_t size, bool drop_remainder) {
  if (size < 1) throw invalid_argument("[ragged_batch] the batch size is {}, not positive", size);
  // Each leaf becomes a RaggedTensor, scalars stay dense.
  const auto combine = [](std::vector<Item>& items, Item& out) {
    size_t k = 0;
    const Nest whole = to_nest(items[0]);
    const Nest made = nest::map_structure([&](const Tensor&) { return Tensor(static_cast<int64_t>(k++)); }, whole);
    const std::function<Nest(const Nest&)> build = [&](const Nest& n) -> Nest {
      if (n.is_leaf()) {
        const std::vector<Tensor> rows = column(items, static_cast<size_t>(n.leaf().item<int64_t>()));
        if (rows[0].rank() == 0) {
          Stacker stacker(static_cast<int64_t>(rows.size()));
          Item one;
          one.structure = detail::fixed_structure<Tensor>();
          for (const Tensor& t : rows) {
            one.tensors.assign(1, t);
            stacker.add(one);
          }
          stacker.finish(one);
          return one.tensors[0];
        }
        std::vector<int64_t> splits{0};
        for (const Tensor& t : rows) splits.push_back(splits.back() + t.dim(0));
        return RaggedTensor::from_row_splits(join_rows(rows), Tensor::of<int64_t>(splits));
      }
      std::vector<Nest> parts;
      for (const Nest& each : n.items()) parts.push_back(build(each));
      return n.rebuilt<Tensor>(std::move(parts));
    };
    from_nest(build(made), out);
  };
  const auto spec = [](const ElementSpec& in, int64_t) { return in.is_leaf() ? unknown_spec(nullptr) : in; };
  return std::make_shared<CombineNode>(std::move(input), "RaggedBatch", fmt::format("{}", size), size, drop_remainder,
                                       combine, spec);
}

NodePtr nodes::unbatch(NodePtr input) { return std::make_shared<RowsNode>(std::move(input), 0, false); }
NodePtr nodes::rebatch(NodePtr input, int64_t size, bool drop_remainder) {
  if (size < 1) throw invalid_argument("[rebatch] the batch size is {}, not positive", size);
  return std::make_shared<RowsNode>(std::move(input), size, drop_remainder);
}

}  // namespace runnel::data
