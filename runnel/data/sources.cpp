// Sources in memory: tensors, ranges, random numbers, generators.
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/base/philox.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"
#include "runnel/data/rows.h"
#include "runnel/op/random_context.h"

namespace runnel::data {
namespace {

class TensorsNode : public IndexedNode {
 public:
  explicit TensorsNode(Item element) : element_(std::move(element)) {}
  std::string name() const override { return "FromTensors"; }
  ElementSpec element_spec() const override { return spec_of(element_); }
  int64_t cardinality() const override { return 1; }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context&) const override {
    struct View : Indexed {
      Item element;
      int64_t size() const override { return 1; }
      void compute(int64_t, Item& out) const override { out = element; }
    };
    auto view = std::make_shared<View>();
    view->element = element_;
    return view;
  }

 private:
  Item element_;
};

void refuse_symbolic(const Tensor& t) {
  if (t.is_symbolic()) {
    throw make_error(Code::failed_precondition,
                     "[from_tensor_slices] a tensor of a function that is being traced has no value yet");
  }
}

class SlicesView : public Indexed {
 public:
  SlicesView(Item components, int64_t rows) : whole_(std::move(components)), rows_(rows) {}
  int64_t size() const override { return rows_; }

 protected:
  void compute(int64_t i, Item& out) const override {
    out.structure = whole_.structure;
    out.tensors.clear();
    for (const Tensor& t : whole_.tensors) out.tensors.push_back(row_of(t, i));
  }
  void collect(std::span<const int64_t> indices, Item& out) const override {
    const int64_t first = indices.front();
    bool successive = true;
    for (size_t k = 1; k < indices.size() && successive; ++k) {
      successive = indices[k] == first + static_cast<int64_t>(k);
    }
    out.structure = whole_.structure;
    out.tensors.clear();
    for (const Tensor& t : whole_.tensors) {
      const auto n = static_cast<int64_t>(indices.size());
      out.tensors.push_back(successive ? t.rows(first, first + n) : rows_at(t, indices));
    }
  }

 private:
  static Tensor rows_at(const Tensor& t, std::span<const int64_t> indices) {
    Dims dims = t.shape().dims();
    dims[0] = static_cast<int64_t>(indices.size());
    const Tensor out = Tensor::empty(t.dtype(), Shape(dims));
    const int64_t row = t.num_elements() / std::max<int64_t>(1, t.dim(0));
    if (is_plain(t.dtype())) {
      const size_t bytes = static_cast<size_t>(row) * dtype_size(t.dtype());
      const char* from = t.data<char>();
      char* to = out.mutable_data<char>();
      // Rows far apart in memory: the next ones are asked for while one is copied.
      constexpr size_t kAhead = 4;
      for (size_t k = 0; k < indices.size(); ++k) {
        if (k + kAhead < indices.size()) {
          const char* next = from + static_cast<size_t>(indices[k + kAhead]) * bytes;
          for (size_t line = 0; line < std::min<size_t>(bytes, 1024); line += 64) __builtin_prefetch(next + line);
        }
        std::memcpy(to + k * bytes, from + static_cast<size_t>(indices[k]) * bytes, bytes);
      }
    } else if (t.dtype() == DType::string) {
      for (size_t k = 0; k < indices.size(); ++k) {
        std::copy_n(t.data<Bytes>() + indices[k] * row, row, out.mutable_data<Bytes>() + static_cast<int64_t>(k) * row);
      }
    } else {
      for (size_t k = 0; k < indices.size(); ++k) {
        std::copy_n(t.data<VariantValue>() + indices[k] * row, row,
                    out.mutable_data<VariantValue>() + static_cast<int64_t>(k) * row);
      }
    }
    return out;
  }

  Item whole_;
  int64_t rows_;
};

class SlicesNode : public IndexedNode {
 public:
  explicit SlicesNode(Item components) : components_(std::move(components)) {
    const std::vector<std::string> paths = nest::paths(components_.structure->nest);
    if (components_.tensors.empty()) throw invalid_argument("[from_tensor_slices] there is no tensor to slice");
    for (size_t k = 0; k < components_.tensors.size(); ++k) {
      Tensor& t = components_.tensors[k];
      refuse_symbolic(t);
      t = t.to_host();
      const std::string name = paths[k].empty() ? "the tensor" : "component " + paths[k];
      if (t.rank() == 0) throw invalid_argument("[from_tensor_slices] {} is a scalar, which has no slices", name);
      if (t.dtype() == DType::resource) {
        throw invalid_argument("[from_tensor_slices] {} holds resource handles", name);
      }
      if (t.dim(0) != components_.tensors[0].dim(0)) {
        throw invalid_argument(
            "[from_tensor_slices] first dimensions differ: component {} has {} rows ({}), component {} {} ({})",
            paths[0], components_.tensors[0].dim(0), components_.tensors[0].shape().str(), paths[k], t.dim(0),
            t.shape().str());
      }
    }
  }
  std::string name() const override { return "FromTensorSlices"; }
  ElementSpec element_spec() const override {
    std::vector<TensorSpec> leaves;
    for (const Tensor& t : components_.tensors) {
      const Dims& dims = t.shape().dims();
      leaves.push_back({PartialShape(std::span<const int64_t>(dims.begin() + 1, dims.size() - 1)), t.dtype(), ""});
    }
    return nest::pack(components_.structure->nest, leaves);
  }
  int64_t cardinality() const override { return components_.tensors[0].dim(0); }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context&) const override {
    return std::make_shared<SlicesView>(components_, cardinality());
  }

 private:
  Item components_;
};

// Slices of SparseTensors and RaggedTensors, and of what stands beside them.
class CompositeSlicesNode : public IndexedNode {
 public:
  explicit CompositeSlicesNode(Item components) : components_(std::move(components)) {
    for (const Tensor& t : components_.tensors) refuse_symbolic(t);
    prepare_rows(components_, "from_tensor_slices");
  }
  std::string name() const override { return "FromTensorSlices"; }
  ElementSpec element_spec() const override { return unbatched(spec_of(components_)); }
  int64_t cardinality() const override { return rows_of(components_); }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context&) const override {
    struct View : Indexed {
      Item whole;
      int64_t size() const override { return rows_of(whole); }
      void compute(int64_t i, Item& out) const override { row_at(whole, i, out); }
    };
    auto view = std::make_shared<View>();
    view->whole = components_;
    return view;
  }

 private:
  Item components_;
};

class RangeNode : public IndexedNode {
 public:
  RangeNode(int64_t start, int64_t step, int64_t size) : start_(start), step_(step), size_(size) {}
  std::string name() const override { return size_ == kEndless ? "Counter" : "Range"; }
  std::string details() const override { return fmt::format("{}+{}", start_, step_); }
  ElementSpec element_spec() const override { return scalar_spec(DType::int64); }
  int64_t cardinality() const override { return size_ == kEndless ? INFINITE_CARDINALITY : size_; }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context&) const override {
    struct View : Indexed {
      int64_t start, step, n;
      int64_t size() const override { return n; }
      void compute(int64_t i, Item& out) const override {
        out.structure = detail::fixed_structure<Tensor>();
        out.tensors.assign(1, Tensor(start + i * step));
      }
      void collect(std::span<const int64_t> indices, Item& out) const override {
        const Tensor t = Tensor::empty(DType::int64, {static_cast<int64_t>(indices.size())});
        for (size_t k = 0; k < indices.size(); ++k) t.mutable_data<int64_t>()[k] = start + indices[k] * step;
        out.structure = detail::fixed_structure<Tensor>();
        out.tensors.assign(1, t);
      }
    };
    auto view = std::make_shared<View>();
    view->start = start_;
    view->step = step_;
    view->n = size_;
    return view;
  }

 private:
  int64_t start_, step_, size_;
};

class RandomNode : public IndexedNode {
 public:
  RandomNode(std::optional<int64_t> seed, bool anew)
      : seed_(seed ? mix(static_cast<uint64_t>(*seed), 0) | 1 : draw_seed()), anew_(anew) {}
  std::string name() const override { return "Random"; }
  ElementSpec element_spec() const override { return scalar_spec(DType::int64); }
  int64_t cardinality() const override { return INFINITE_CARDINALITY; }
  uint64_t seed() const override { return seed_; }

 protected:
  std::shared_ptr<Indexed> make_indexed(const Context& ctx) const override {
    struct View : Indexed {
      uint64_t key;
      int64_t size() const override { return kEndless; }
      void compute(int64_t i, Item& out) const override {
        Philox gen(key);
        gen.skip(static_cast<uint64_t>(i));
        out.structure = detail::fixed_structure<Tensor>();
        out.tensors.assign(1, Tensor(static_cast<int64_t>(gen()[0])));
      }
    };
    auto view = std::make_shared<View>();
    view->key = mix(seed_in(ctx), anew_ ? ctx.epoch : 0);
    return view;
  }

 private:
  uint64_t seed_;
  bool anew_;
};

// What the elements of a generator must be: what its spec says, and the structure and dtypes of the first of them.
class GeneratorCheck {
 public:
  explicit GeneratorCheck(const ElementSpec& spec) : spec_(spec), leaves_(nest::flatten(spec)) {
    const bool nothing = spec.is_leaf() && spec.leaf().dtype == DType::invalid && !spec.leaf().shape.has_rank();
    if (!nothing) structure_ = structure_of(spec);
  }

  // Element `number`; an Error where it is none of this generator's.
  void check(const Item& item, int64_t number) {
    check_defined(item, "from_generator");
    if (structure_ == nullptr) {
      structure_ = item.structure;
      leaves_.resize(item.tensors.size(), {PartialShape::unknown(), DType::invalid, ""});
      spec_ = nest::pack(structure_->nest, leaves_);
    }
    if (item.structure != structure_) wrong(item, number);
    bool learned = false;
    for (size_t k = 0; k < leaves_.size(); ++k) {
      const Tensor& t = item.tensors[k];
      if (leaves_[k].dtype == DType::invalid) {
        leaves_[k].dtype = t.dtype();
        learned = true;
      }
      if (leaves_[k].dtype != t.dtype() || !leaves_[k].shape.compatible_with(t.partial_shape())) wrong(item, number);
    }
    if (learned) spec_ = nest::pack(structure_->nest, leaves_);
  }

 private:
  [[noreturn]] void wrong(const Item& item, int64_t number) const {
    throw invalid_argument(
        "[from_generator] element {} is {}, where the spec or the elements before it say {}: all elements have one "
        "structure, one dtype at each place, and the shapes of the spec",
        number, str(spec_of(item)), str(spec_));
  }

  ElementSpec spec_;
  std::vector<TensorSpec> leaves_;
  const Structure* structure_ = nullptr;  // null: not yet known
};

class GeneratorNode : public DatasetNode {
 public:
  GeneratorNode(std::function<GeneratorFn()> make, ElementSpec spec) : make_(std::move(make)), spec_(std::move(spec)) {}
  std::string name() const override { return "Generator"; }
  ElementSpec element_spec() const override { return spec_; }
  int64_t cardinality() const override { return UNKNOWN_CARDINALITY; }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    // Its state is how many elements it gave: a restored one runs through them again.
    struct It : IteratorNode {
      std::function<GeneratorFn()> make;
      std::shared_ptr<Pipeline> pipeline;
      uint64_t key = 0;
      RandomContext random{0};
      GeneratorFn generator;
      int64_t given = 0;
      bool ended = false;
      GeneratorCheck checked;
      explicit It(const ElementSpec& spec) : checked(spec) {}
      bool produce(Item& out) override {
        if (!pull(out)) return false;
        checked.check(out, given - 1);
        return true;
      }
      bool pull(Item& out) {
        if (ended) return false;
        check_cancelled(*pipeline);
        const RandomScope scope(random);
        out.structure = nullptr;
        const bool more = in_callable("from_generator", where_, [&] {
          if (!generator) {
            random.reset(key);
            generator = make();
          }
          return generator(out);
        });
        if (!more) {
          ended = true;
          return false;
        }
        ++given;
        return true;
      }
      void save(StateWriter& out) const override { out.integer(static_cast<uint64_t>(given)); }
      void restore(StateReader& in) override {
        const int64_t n = in.count();
        generator = nullptr;
        ended = false;
        given = 0;
        while (given < n) {
          Item item;
          if (!pull(item)) return;
          try {
            checked.check(item, given - 1);
          } catch (const Error&) {
            // It was delivered before the state was saved.
          }
        }
      }
    };
    auto it = std::make_unique<It>(spec_);
    it->make = make_;
    it->pipeline = ctx.pipeline;
    it->key = mix(seed_in(ctx), ctx.epoch);
    return it;
  }
  uint64_t seed() const override { return seed_; }

 private:
  std::function<GeneratorFn()> make_;
  ElementSpec spec_;
  uint64_t seed_ = draw_seed();
};

}  // namespace

NodePtr nodes::tensors(Item element) {
  check_defined(element, "from_tensors", "there is");
  return std::make_shared<TensorsNode>(std::move(element));
}
NodePtr nodes::tensor_slices(Item components) {
  check_defined(components, "from_tensor_slices", "there is");
  if (!components.structure->plain) return std::make_shared<CompositeSlicesNode>(std::move(components));
  return std::make_shared<SlicesNode>(std::move(components));
}

NodePtr nodes::range(int64_t start, int64_t stop, int64_t step) {
  if (step == 0) throw invalid_argument("[range] the step is 0");
  const bool none = step > 0 ? stop <= start : stop >= start;
  const int64_t n = none ? 0 : (step > 0 ? (stop - start - 1) / step : (start - stop - 1) / -step) + 1;
  return std::make_shared<RangeNode>(start, step, n);
}
NodePtr nodes::counter(int64_t start, int64_t step) { return std::make_shared<RangeNode>(start, step, kEndless); }
NodePtr nodes::random(std::optional<int64_t> seed, bool anew) { return std::make_shared<RandomNode>(seed, anew); }
NodePtr nodes::generator(std::function<GeneratorFn()> make, ElementSpec spec) {
  return std::make_shared<GeneratorNode>(std::move(make), std::move(spec));
}

}  // namespace runnel::data
