// Lists as a whole: to and from tensors.
#include <algorithm>
#include <numeric>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/unrecorded.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/segment.h"
#include "runnel/ops/sort.h"
#include "runnel/ops/tensor_list_util.h"

namespace runnel {
namespace {

struct WholeListAttrs {
  DType element_dtype = DType::invalid;
  static constexpr auto fields() { return field_list(field("element_dtype", &WholeListAttrs::element_dtype)); }
};

struct StackAttrs {
  DType element_dtype = DType::invalid;
  int64_t num_elements = -1;
  static constexpr auto fields() {
    return field_list(field("element_dtype", &StackAttrs::element_dtype),
                      field("num_elements", &StackAttrs::num_elements));
  }
};

// Row i of t, sharing its buffer.
Tensor row(const Tensor& t, int64_t i) {
  const Dims rest(t.shape().begin() + 1, t.shape().end());
  return t.rows(i, i + 1).with_shape(Shape(rest));
}

void require_rows(const Tensor& t) {
  if (t.rank() == 0) throw invalid_argument("a tensor with at least one dimension is needed, got a scalar");
}

// The rows of a tensor of rank 1 or more must fit an element shape.
void check_rows_fit(const Tensor& t, const PartialShape& element_shape) {
  require_rows(t);
  const Dims rest(t.shape().begin() + 1, t.shape().end());
  if (!element_shape.compatible_with(PartialShape(rest))) {
    throw invalid_argument("rows of shape {} do not fit the element shape {}", PartialShape(rest).str(),
                           element_shape.str());
  }
}

// Of the parts that rows are put into, only what follows the first dimension must fit.
void check_parts_fit(const Tensor& t, const PartialShape& element_shape) {
  if (!element_shape.has_rank()) return;
  if (element_shape.rank() == 0) throw invalid_argument("parts of a tensor have a dimension, the element shape is []");
  const PartialShape rest(Dims(t.shape().begin() + 1, t.shape().end()));
  if (!rest.compatible_with(PartialShape(Dims(element_shape.begin() + 1, element_shape.end())))) {
    throw invalid_argument("parts of a tensor of shape {} do not fit the element shape {}", t.shape().str(),
                           element_shape.str());
  }
}

bool all_on_host(const std::vector<Tensor>& items) {
  return std::all_of(items.begin(), items.end(), [](const Tensor& t) { return t.device().is_host(); });
}

// Items, which all have one shape, one after the other as output 0; undefined ones are zeros.
void put_stacked(KernelContext& c, const TensorList& list, std::vector<Tensor> items, const PartialShape& asked) {
  PartialShape shape = list.element_shape();
  if (!shape.compatible_with(asked)) {
    throw invalid_argument("the element shape {} asked for does not fit that of the list, {}", asked.str(),
                           shape.str());
  }
  shape = shape.merged_with(asked);
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].defined()) continue;
    if (!shape.compatible_with(items[i].shape())) {
      throw invalid_argument("items of one shape can be stacked; number {} has shape {}, others {}", i,
                             items[i].shape().str(), shape.str());
    }
    shape = items[i].shape();
  }
  if (!shape.is_static() && items.empty()) {
    throw invalid_argument("an empty list can be stacked only when its element shape is known, not {}", shape.str());
  }
  const Shape item_shape = shape.is_static() ? Shape(shape) : unwritten_shape(list, asked, 0);
  Tensor zero;
  for (Tensor& item : items) {
    if (item.defined()) continue;
    if (!zero.defined()) zero = zeros_of(list.element_dtype(), item_shape);
    item = zero;
  }
  if (!all_on_host(items)) {
    const Unrecorded inner;
    return c.forward(0, stack(items));
  }
  const Shape whole(with_leading(static_cast<int64_t>(items.size()), item_shape));
  const Tensor& out = c.allocate(0, whole);
  const int64_t n = item_shape.num_elements();
  for (size_t i = 0; i < items.size(); ++i) {
    cpu::copy_elements(out.dtype(), items[i].raw(),
                       cpu::element_at(out.mutable_data<char>(), out.dtype(), static_cast<int64_t>(i) * n), n);
  }
}

constexpr int64_t kDiffering = -2;  // beside kUnknownDim

TensorList::Writes scattered(const KernelContext& c, const Tensor& values, int indices_input, int64_t& largest) {
  const Dims indices = c.ints(indices_input);
  if (static_cast<int64_t>(indices.size()) != values.dim(0)) {
    throw invalid_argument("{} indices for {} rows", indices.size(), values.dim(0));
  }
  TensorList::Writes writes;
  largest = -1;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0) throw invalid_argument("index {} is negative", indices[i]);
    largest = std::max(largest, indices[i]);
    writes.emplace_back(indices[i], row(values, static_cast<int64_t>(i)));
  }
  return writes;
}

// The length of an item nobody wrote: what leading_dims says, else `first`, else that of all others.
int64_t unwritten_length(const std::vector<Tensor>& items, int64_t first, const Dims& leading_dims, size_t i) {
  if (i < leading_dims.size() && leading_dims[i] >= 0) return leading_dims[i];
  for (size_t k = 0; k < items.size() && first != kDiffering; ++k) {
    if (!items[k].defined() || items[k].dim(0) == first) continue;
    first = first == kUnknownDim ? items[k].dim(0) : kDiffering;
  }
  if (first < 0) throw invalid_argument("item {} was never written and its length is unknown", i);
  return first;
}

void concat_items(KernelContext& c, const TensorList& list) {
  std::vector<Tensor> items = list.items();
  PartialShape shape = list.element_shape().merged_with(element_shape_input(c, 1));
  const Dims leading_dims = c.ints(2);
  PartialShape rest = PartialShape::unknown();
  int64_t first = kUnknownDim;
  if (shape.has_rank()) {
    if (shape.rank() == 0) throw invalid_argument("scalars cannot be joined: items need a dimension");
    rest = PartialShape(Dims(shape.begin() + 1, shape.end()));
    first = shape[0];
  }
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].defined()) continue;
    if (items[i].rank() == 0) throw invalid_argument("scalars cannot be joined: items need a dimension");
    if (first >= 0 && items[i].dim(0) != first) {
      throw invalid_argument("item {} has shape {}, the element shape is {}", i, items[i].shape().str(), shape.str());
    }
    const PartialShape own(Dims(items[i].shape().begin() + 1, items[i].shape().end()));
    if (!rest.compatible_with(own)) {
      throw invalid_argument("items differ in more than their first dimension: number {} has shape {}, others [?{}{}",
                             i, items[i].shape().str(), rest.rank() > 0 ? "," : "", rest.str().substr(1));
    }
    rest = own;
  }
  if (!rest.is_static()) {
    throw invalid_argument("the element shape {} says too little: nobody wrote an item", shape.str());
  }
  Tensor& lengths = c.allocate(1, Shape{list.size()});
  int64_t total = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t n = items[i].defined() ? items[i].dim(0) : unwritten_length(items, first, leading_dims, i);
    lengths.mutable_data<int64_t>()[i] = n;
    total += n;
  }
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].defined()) continue;
    items[i] = zeros_of(list.element_dtype(), Shape(with_leading(lengths.data<int64_t>()[i], rest)));
  }
  if (!all_on_host(items)) {
    const Unrecorded inner;
    return c.forward(0, concat(items, 0));
  }
  const int64_t row_size = Shape(rest).num_elements();
  const Tensor& out = c.allocate(0, Shape(with_leading(total, rest)));
  int64_t at = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t n = lengths.data<int64_t>()[i];
    cpu::copy_elements(out.dtype(), items[i].raw(),
                       cpu::element_at(out.mutable_data<char>(), out.dtype(), at * row_size), n * row_size);
    at += n;
  }
}

}  // namespace

void register_tensor_list_whole(Registry& r) {
  const Tensor numbers3 = sample_list({Tensor(1.f), Tensor(2.f), Tensor(3.f)});
  const Tensor rows2 = sample_list({Tensor{1.f, 2.f}, Tensor{3.f, 4.f}});
  const Tensor any_shape(-1);
  const WholeListAttrs floats{.element_dtype = DType::float32};

  r.define("TensorListFromTensor")
      .type("element_dtype", all_types)
      .in("tensor")
      .type("shape_type", index_types)
      .in_host("element_shape", "shape_type")
      .out("output_handle", DType::variant)
      .shape(scalar_shape)
      .forwards()
      .any_device()
      .cpu([](KernelContext& c) {
        const Tensor& t = c.in(0);
        const PartialShape element_shape = element_shape_input(c, 1);
        check_rows_fit(t, element_shape);
        std::vector<Tensor> items;
        for (int64_t i = 0; i < t.dim(0); ++i) items.push_back(row(t, i));
        put_list(c, 0, std::make_shared<const TensorList>(t.dtype(), element_shape, std::move(items)));
      })
      .grad([](const GradCtx& g) {
        const Tensor& x = g.x(0);
        const PartialShape shape = x.partial_shape();
        const int64_t n = shape.has_rank() ? shape[0] : kUnknownDim;
        return Gradients{list_ops::stack(g.dy(), list_ops::row_shape(x), x.dtype(), n), {}};
      })
      .doc("The rows of a tensor as a list.")
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{2}}})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{3}},
               .error = "rows of shape [2] do not fit the element shape [3]"})
      .sample({.in = {Tensor(1.f), any_shape}, .error = "a tensor with at least one dimension is needed"});

  r.define<StackAttrs>("TensorListStack")
      .in("input_handle", DType::variant)
      .in_host("element_shape", DType::int32)
      .out("tensor", "element_dtype")
      .shape([](InferContext& c, const StackAttrs& a) {
        c.output(with_leading(a.num_elements >= 0 ? a.num_elements : kUnknownDim, element_shape_input(c, 1)));
      })
      .forwards()
      .cpu([](KernelContext& c, const StackAttrs& a) {
        const TensorList& list = list_input(c, 0, a.element_dtype);
        if (a.num_elements != -1 && a.num_elements != list.size()) {
          throw invalid_argument("the list has {} items, asked for {}", list.size(), a.num_elements);
        }
        put_stacked(c, list, list.items(), element_shape_input(c, 1));
      })
      .grad([](const GradCtx& g) {
        const Tensor dy = g.dy();
        return Gradients{list_ops::from_tensor(dy, list_ops::row_shape(dy)), {}};
      })
      .doc("The items of a list, which all have one shape, along a new first dimension.")
      .sample({.in = {rows2, Tensor{2}}, .out = {Tensor{{1.f, 2.f}, {3.f, 4.f}}}}, {.element_dtype = DType::float32})
      .sample({.in = {sample_list({Tensor{1.f, 2.f}, Tensor()}), any_shape}, .out = {Tensor{{1.f, 2.f}, {0.f, 0.f}}}},
              {.element_dtype = DType::float32, .num_elements = 2})
      .sample({.in = {sample_list({Tensor{1.f, 2.f}, Tensor(3.f)}), any_shape},
               .error = "number 1 has shape [], others [2]"},
              {.element_dtype = DType::float32})
      .sample({.in = {rows2, any_shape}, .error = "the list has 2 items, asked for 3"},
              {.element_dtype = DType::float32, .num_elements = 3});

  r.define<WholeListAttrs>("TensorListGather")
      .in("input_handle", DType::variant)
      .in_host("indices", DType::int32)
      .in_host("element_shape", DType::int32)
      .out("values", "element_dtype")
      .shape([](InferContext& c) {
        c.require_rank(1, 1);
        c.output(with_leading(c.input(1).has_rank() ? c.input(1)[0] : kUnknownDim, element_shape_input(c, 2)));
      })
      .forwards()
      .cpu([](KernelContext& c, const WholeListAttrs& a) {
        const TensorList& list = list_input(c, 0, a.element_dtype);
        std::vector<Tensor> items;
        for (int64_t i : c.ints(1)) {
          check_index(list, i);
          items.push_back(list.item(i));
        }
        put_stacked(c, list, std::move(items), element_shape_input(c, 2));
      })
      .grad([](const GradCtx& g) {
        // An item gathered more than once gets the sum of its gradients.
        const Unique distinct = unique(g.x(1));
        const Tensor sums = math::unsorted_segment_sum(g.dy(), distinct.idx, size(distinct.y));
        return Gradients{
            list_ops::scatter(sums, distinct.y, list_ops::element_shape(g.x(0)), list_ops::length(g.x(0))), {}, {}};
      })
      .doc("The items at `indices` along a new first dimension.")
      .sample({.in = {numbers3, Tensor{2, 0, 2}, Tensor::empty(DType::int32, {0})}, .out = {Tensor{3.f, 1.f, 3.f}}},
              floats)
      .sample({.in = {numbers3, Tensor{3}, any_shape}, .error = "index 3 is out of range: the list has 3 items"},
              floats);

  r.define("TensorListScatterV2")
      .type("element_dtype", all_types)
      .in("tensor")
      .in_host("indices", DType::int32)
      .type("shape_type", index_types)
      .in_host("element_shape", "shape_type")
      .in_host("num_elements", DType::int32)
      .out("output_handle", DType::variant)
      .shape([](InferContext& c) {
        c.require_rank(1, 1);
        c.require_rank(3, 0);
        c.output(PartialShape{});
      })
      .forwards()
      .any_device()
      .cpu([](KernelContext& c) {
        const Tensor& values = c.in(0);
        const PartialShape element_shape = element_shape_input(c, 2);
        check_rows_fit(values, element_shape);
        int64_t largest = -1;
        const TensorList::Writes writes = scattered(c, values, 1, largest);
        int64_t n = c.int_scalar(3);
        if (n < -1) throw invalid_argument("a list of {} items", n);
        if (n == -1) n = largest + 1;
        if (largest >= n) throw invalid_argument("index {} is out of range: the list has {} items", largest, n);
        const TensorList blank(values.dtype(), element_shape, n);
        put_list(c, 0, blank.changed(n, writes));
      })
      .grad([](const GradCtx& g) {
        return Gradients{list_ops::gather(g.dy(), g.x(1), list_ops::row_shape(g.x(0)), g.x(0).dtype()), {}, {}, {}};
      })
      .doc("A list with row i of the tensor at indices[i] and num_elements items (-1: as many as needed).")
      .sample({.in = {Tensor{5.f, 7.f}, Tensor{2, 0}, any_shape, Tensor(4)}})
      .sample({.in = {Tensor{5.f, 7.f}, Tensor{2, 0}, any_shape, Tensor(2)}, .error = "index 2 is out of range"})
      .sample({.in = {Tensor{5.f, 7.f}, Tensor{2}, any_shape, Tensor(4)}, .error = "1 indices for 2 rows"})
      .sample({.in = {Tensor{5.f, 7.f}, Tensor{2, 0}, any_shape, Tensor(-5)}, .error = "a list of -5 items"});

  r.define("TensorListScatterIntoExistingList")
      .in("input_handle", DType::variant)
      .type("element_dtype", all_types)
      .in("tensor", "element_dtype")
      .in_host("indices", DType::int32)
      .out("output_handle", DType::variant)
      .shape([](InferContext& c) {
        c.require_rank(2, 1);
        c.output(PartialShape{});
      })
      .forwards()
      .any_device()
      .cpu([](KernelContext& c) {
        const TensorList& list = list_input(c, 0, c.in(1).dtype());
        check_rows_fit(c.in(1), list.element_shape());
        int64_t largest = -1;
        const TensorList::Writes writes = scattered(c, c.in(1), 2, largest);
        put_list(c, 0, list.changed(std::max(list.size(), largest + 1), writes));
      })
      .grad([](const GradCtx& g) {
        const Tensor& values = g.x(1);
        const Tensor dlist = g.dy();
        auto rest = [&] {
          return list_ops::resize(list_ops::scatter_into(dlist, zeros_like(values), g.x(2)), list_ops::length(g.x(0)));
        };
        auto written = [&] { return list_ops::gather(dlist, g.x(2), list_ops::row_shape(values), values.dtype()); };
        return Gradients{g.want(0, rest), g.want(1, written), {}};
      })
      .doc("The list with row i of the tensor at indices[i]; it grows where an index needs it.")
      .sample({.make =
                   [] {
                     return std::vector<Tensor>{sample_list({Tensor(1.f)}), Tensor{5.f, 7.f}, Tensor{4, 0}};
                   }})
      .sample({.in = {numbers3, Tensor{5.f}, Tensor{-1}}, .error = "index -1 is negative"});

  r.define("TensorListSplit")
      .type("element_dtype", all_types)
      .in("tensor")
      .type("shape_type", index_types)
      .in_host("element_shape", "shape_type")
      .in_host("lengths", DType::int64)
      .out("output_handle", DType::variant)
      .shape(scalar_shape)
      .forwards()
      .any_device()
      .cpu([](KernelContext& c) {
        const Tensor& t = c.in(0);
        const PartialShape element_shape = element_shape_input(c, 1);
        require_rows(t);
        if (c.in(2).rank() != 1)
          throw invalid_argument("lengths must be a vector, got shape {}", c.in(2).shape().str());
        const Dims lengths = c.ints(2);
        const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
        std::vector<Tensor> items;
        int64_t at = 0;
        for (int64_t n : lengths) {
          if (n < 0 || total != t.dim(0)) {
            throw invalid_argument("lengths [{}] do not add up to the {} rows of the tensor", comma_separated(lengths),
                                   t.dim(0));
          }
          items.push_back(t.rows(at, at + n));
          at += n;
        }
        if (at != t.dim(0)) {
          throw invalid_argument("lengths [{}] do not add up to the {} rows of the tensor", comma_separated(lengths),
                                 t.dim(0));
        }
        check_parts_fit(t, element_shape);
        put_list(c, 0, std::make_shared<const TensorList>(t.dtype(), element_shape, std::move(items)));
      })
      .grad([](const GradCtx& g) {
        const Tensor& x = g.x(0);
        const Tensor part_shape = concat({Tensor{-1}, list_ops::row_shape(x)}, 0);
        return Gradients{list_ops::concat(g.dy(), part_shape, g.x(2), x.dtype()).tensor, {}, {}};
      })
      .doc("The rows of a tensor in parts of the given lengths, as a list.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{-1}, Tensor::of<int64_t>({2, 1})}})
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{-1}, Tensor::of<int64_t>({2, 2})},
               .error = "lengths [2,2] do not add up to the 3 rows"})
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{2}, Tensor::of<int64_t>({2, 1})}})
      .sample({.in = {Tensor{1.f, 2.f, 3.f}, Tensor{2, 2}, Tensor::of<int64_t>({2, 1})}, .error = "do not fit"})
      .sample(
          {.in = {Tensor{1.f, 2.f, 3.f}, Tensor{-1}, Tensor::empty(DType::int64, {0})}, .error = "add up to the 3"});

  r.define<WholeListAttrs>("TensorListConcatV2")
      .type("shape_type", index_types)
      .in("input_handle", DType::variant)
      .in_host("element_shape", "shape_type")
      .in_host("leading_dims", DType::int64)
      .out("tensor", "element_dtype")
      .out_host("lengths", DType::int64)
      .shape([](InferContext& c) {
        const PartialShape shape = element_shape_input(c, 1);
        PartialShape whole = PartialShape::unknown();
        if (shape.has_rank() && shape.rank() > 0) {
          whole = with_leading(kUnknownDim, PartialShape(Dims(shape.begin() + 1, shape.end())));
        }
        c.output(0, whole);
        c.output(1, PartialShape{kUnknownDim});
      })
      .forwards()
      .cpu([](KernelContext& c, const WholeListAttrs& a) { concat_items(c, list_input(c, 0, a.element_dtype)); })
      .grad([](const GradCtx& g) {
        return Gradients{list_ops::split(g.dy(), list_ops::element_shape(g.x(0)), g.y(1)), {}, {}};
      })
      .doc("The items of a list joined along their first dimension, and their lengths.")
      .sample({.in = {sample_list({Tensor{1.f, 2.f}, Tensor{3.f}}), Tensor{-1}, Tensor::empty(DType::int64, {0})},
               .out = {Tensor{1.f, 2.f, 3.f}, Tensor::of<int64_t>({2, 1})}},
              floats)
      .sample({.in = {sample_list({Tensor{1.f, 2.f}, Tensor()}), Tensor{-1}, Tensor::of<int64_t>({2, 1})},
               .out = {Tensor{1.f, 2.f, 0.f}, Tensor::of<int64_t>({2, 1})}},
              floats)
      .sample({.in = {sample_list({Tensor{1.f, 2.f}, Tensor()}), Tensor{2}, Tensor::of<int64_t>({2, 1})},
               .out = {Tensor{1.f, 2.f, 0.f}, Tensor::of<int64_t>({2, 1})}},
              floats)
      .sample({.in = {sample_list({Tensor{1.f, 2.f}, Tensor()}), any_shape, Tensor::empty(DType::int64, {0})},
               .out = {Tensor{1.f, 2.f, 0.f, 0.f}, Tensor::of<int64_t>({2, 2})}},
              floats)
      .sample({.in = {sample_list({Tensor{1.f, 2.f}, Tensor{3.f}}), Tensor{2}, Tensor::empty(DType::int64, {0})},
               .error = "item 1 has shape [1], the element shape is [2]"},
              floats)
      .sample({.in = {sample_list({Tensor{1.f, 2.f}, Tensor(3.f)}), any_shape, Tensor::empty(DType::int64, {0})},
               .error = "scalars cannot be joined"},
              floats);
}

namespace list_ops {

Tensor from_tensor(const Operand& tensor, const Tensor& element_shape) {
  static const Op op("TensorListFromTensor");
  return op({tensor, element_shape});
}
Tensor stack(const Tensor& list, const Tensor& element_shape, DType element_dtype, int64_t num_elements) {
  static const Op<StackAttrs> op("TensorListStack");
  return op({list, element_shape}, {.element_dtype = element_dtype, .num_elements = num_elements});
}
Tensor gather(const Tensor& list, const Operand& indices, const Tensor& element_shape, DType element_dtype) {
  static const Op<WholeListAttrs> op("TensorListGather");
  return op({list, indices, element_shape}, {.element_dtype = element_dtype});
}
Tensor scatter(const Operand& tensor, const Operand& indices, const Tensor& element_shape,
               const Operand& num_elements) {
  static const Op op("TensorListScatterV2");
  return op({tensor, indices, element_shape, num_elements});
}
Tensor scatter_into(const Tensor& list, const Operand& tensor, const Operand& indices) {
  static const Op op("TensorListScatterIntoExistingList");
  return op({list, tensor, indices});
}
Tensor split(const Operand& tensor, const Tensor& element_shape, const Operand& lengths) {
  static const Op op("TensorListSplit");
  return op({tensor, element_shape, lengths});
}
Concatenated concat(const Tensor& list, const Tensor& element_shape, const Tensor& leading_dims, DType element_dtype) {
  static const Op<WholeListAttrs> op("TensorListConcatV2");
  auto out = op.many({list, element_shape, leading_dims}, {.element_dtype = element_dtype});
  return {out[0], out[1]};
}

}  // namespace list_ops
}  // namespace runnel
