// Batches of elements that differ in shape, and batches taken apart: padded_batch, ragged_batch, unbatch, rebatch.
#include <deque>

#include "runnel/base/format.h"
#include "runnel/data/element_type.h"
#include "runnel/data/input_log.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"
#include "runnel/data/rows.h"

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
        throw invalid_argument(
            "[padded_batch] elements{} of one batch are {}{} and {}{}: they must have one dtype and "
            "one rank; cast() or reshape() them in a map before",
            path, dtype_name(rows[0].dtype()), rows[0].shape().str(), dtype_name(t.dtype()), t.shape().str());
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
    return n < 0 ? n : drop_ ? n / batch_ : groups_of(n, batch_);
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

// Rows of batches, one by one or in batches of another size. What is left of a batch is read again after a restore.
class RowsNode : public DatasetNode {
 public:
  RowsNode(NodePtr input, int64_t batch, bool drop) : DatasetNode({std::move(input)}), batch_(batch), drop_(drop) {}
  std::string name() const override { return batch_ == 0 ? "Unbatch" : "Rebatch"; }
  std::string details() const override { return batch_ == 0 ? "" : fmt::format("{}", batch_); }
  ElementSpec element_spec() const override {
    const ElementSpec spec = input()->element_spec();
    return batch_ == 0 ? unbatched(spec) : rebatched(spec, drop_ ? batch_ : kUnknownDim);
  }
  int64_t cardinality() const override {
    const int64_t n = input()->cardinality();
    if (n == 0 || n == INFINITE_CARDINALITY) return n;
    const int64_t each = n < 0 ? kUnknownDim : known_rows(input()->element_spec());
    if (each < 0) return UNKNOWN_CARDINALITY;
    if (each > 0 && n > kEndless / each) return INFINITE_CARDINALITY;
    const int64_t rows = n * each;
    return batch_ == 0 ? rows : drop_ ? rows / batch_ : groups_of(rows, batch_);
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
      const char* name() const { return batch == 0 ? "unbatch" : "rebatch"; }
      bool pull() {
        Item item;
        if (!input.pull(item)) return false;
        prepare_rows(item, name());
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
            row_at(first, row++, out);
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
          if (n > 0) rows_at(first, row, row + n, part);
          if (n > 0) parts.push_back(std::move(part));
          need -= n;
          row += n;
          if (row == rows_of(first)) {
            items.pop_front();
            row = 0;
          }
        }
        join(parts, out);
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
        input.restore(in, [&](int64_t number, Item& item) {
          try {
            prepare_rows(item, name());
          } catch (const Error&) {
            return;  // was delivered before the state was saved
          }
          items.emplace_back(number, std::move(item));
          if (items.size() > n) items.pop_front();
        });
        if (items.size() != n || row > (items.empty() ? 0 : rows_of(items.front().second))) StateReader::fail();
      }
    };
    return std::make_unique<It>(input()->iterate(ctx), batch_, drop_);
  }

 private:
  int64_t batch_;
  bool drop_;
};

// An Error where batches of such elements are no RaggedTensor.
void check_becomes_ragged(const Item& element) {
  const NestKind kind = element.structure->nest.kind();
  if (kind == NestKind::leaf && element.tensors[0].rank() == 0) {
    throw invalid_argument(
        "[ragged_batch] the elements are scalars ({}), whose batches are vectors and no RaggedTensors: batch(n) makes "
        "these",
        dtype_name(element.tensors[0].dtype()));
  }
  if (kind != NestKind::leaf && kind != NestKind::ragged) {
    throw invalid_argument(
        "[ragged_batch] the elements are {}, whose batches are no RaggedTensor: say what they are, as in "
        "ragged_batch<std::tuple<RaggedTensor, Tensor>>(n)",
        str(spec_of(element)));
  }
}

}  // namespace

NodePtr nodes::padded_batch(NodePtr input, int64_t size, PaddedBatchOptions options) {
  if (size < 1) throw invalid_argument("[padded_batch] the batch size is {}, not positive", size);
  const auto combine = [options](std::vector<Item>& items, Item& out) {
    if (!items[0].structure->plain) {
      throw invalid_argument(
          "[padded_batch] takes tensors alone, not elements {}: batch puts SparseTensors and RaggedTensors together",
          str(spec_of(items[0])));
    }
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

NodePtr nodes::ragged_batch(NodePtr input, int64_t size, bool drop_remainder, bool only_ragged) {
  if (size < 1) throw invalid_argument("[ragged_batch] the batch size is {}, not positive", size);
  // Each tensor becomes a RaggedTensor, scalars stay dense. What is ragged gets a dimension more.
  const auto combine = [only_ragged](std::vector<Item>& items, Item& out) {
    if (only_ragged) check_becomes_ragged(items[0]);
    size_t at = 0;
    const std::function<Nest(const NestOf<Slot>&)> build = [&](const NestOf<Slot>& n) -> Nest {
      if (n.is_leaf()) {
        const std::vector<Tensor> rows = column(items, at++);
        if (rows[0].rank() == 0) return stack_tensors(rows, "");
        std::vector<int64_t> splits{0};
        for (const Tensor& t : rows) splits.push_back(splits.back() + (t.rank() == 0 ? 1 : t.dim(0)));
        return RaggedTensor::from_row_splits(join_tensors(rows, ""), Tensor::of<int64_t>(splits));
      }
      if (n.kind() == NestKind::sparse || n.kind() == NestKind::ragged) {
        const Structure* own = structure_of(n);
        std::vector<Item> parts;
        for (const Item& item : items) {
          const auto begin = item.tensors.begin() + static_cast<ptrdiff_t>(at);
          parts.push_back({own, std::vector<Tensor>(begin, begin + static_cast<ptrdiff_t>(own->leaves))});
        }
        at += own->leaves;
        Item whole;
        stack(parts, whole);
        return to_nest(whole);
      }
      std::vector<Nest> parts;
      for (const NestOf<Slot>& each : n.items()) parts.push_back(build(each));
      return n.rebuilt<Tensor>(std::move(parts));
    };
    for (const Item& item : items) {
      if (item.structure != items[0].structure) detail::wrong_structure(items[0].structure, item.structure);
    }
    from_nest(build(items[0].structure->nest), out);
  };
  // Whether a tensor becomes ragged depends on its rank.
  const auto spec = [](const ElementSpec& in, int64_t batch) {
    for (const TensorSpec& s : nest::flatten(in)) {
      if (!s.shape.has_rank()) return unknown_spec(nullptr);
    }
    const std::function<ElementSpec(const ElementSpec&)> build = [&](const ElementSpec& n) -> ElementSpec {
      if (n.is_leaf() && n.leaf().shape.rank() > 0) {
        Dims dims = n.leaf().shape.dims();
        dims[0] = kUnknownDim;
        const TensorSpec splits{PartialShape{batch < 0 ? kUnknownDim : batch + 1}, DType::int64, ""};
        auto next = [leaf = 0, values = TensorSpec{PartialShape(dims), n.leaf().dtype, n.leaf().name},
                     &splits]() mutable { return leaf++ == 0 ? values : splits; };
        return nest::detail::fill<TensorSpec>(Nest(RaggedTensor::of<int>({{1}})), next);
      }
      if (n.is_leaf() || n.kind() == NestKind::sparse || n.kind() == NestKind::ragged) return batched(n, batch);
      std::vector<ElementSpec> parts;
      for (const ElementSpec& each : n.items()) parts.push_back(build(each));
      return n.rebuilt<TensorSpec>(std::move(parts));
    };
    return build(in);
  };
  return std::make_shared<CombineNode>(std::move(input), "RaggedBatch", fmt::format("{}", size), size, drop_remainder,
                                       combine, spec);
}

NodePtr nodes::unbatch(NodePtr input) { return std::make_shared<RowsNode>(std::move(input), 0, false); }
NodePtr nodes::rebatch(NodePtr input, int64_t size, bool drop_remainder) {
  if (size < 1) throw invalid_argument("[rebatch] the batch size is {}, not positive", size);
  return std::make_shared<RowsNode>(std::move(input), size, drop_remainder);
}

}  // namespace runnel::data
