// Lists item by item: making, reading, writing, pushing, popping.
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/array_util.h"
#include "runnel/ops/tensor_list_util.h"

namespace runnel {
namespace {

struct ListAttrs {
  DType element_dtype = DType::invalid;
  static constexpr auto fields() { return field_list(field("element_dtype", &ListAttrs::element_dtype)); }
};

struct ElementShapeAttrs {
  DType shape_type = DType::invalid;
  static constexpr auto fields() {
    return field_list(field("shape_type", &ElementShapeAttrs::shape_type, {.types = index_types.mask}));
  }
};

struct SetItemAttrs {
  bool resize_if_index_out_of_bounds = false;
  static constexpr auto fields() {
    return field_list(field("resize_if_index_out_of_bounds", &SetItemAttrs::resize_if_index_out_of_bounds));
  }
};

// Of ops that make a list and take a number as input i.
template <int i>
void list_made_with(InferContext& c) {
  c.require_rank(i, 0);
  c.output(PartialShape{});
}

PartialShape spelled_shape(const Tensor& t, const std::string& name) {
  const Dims dims = int_values(t);
  if (t.rank() == 0 && dims[0] == -1) return PartialShape::unknown();
  if (t.rank() != 1) {
    throw invalid_argument("{} must be a vector of sizes or the scalar -1, got shape {}", name, t.shape().str());
  }
  for (int64_t d : dims) {
    if (d < kUnknownDim) throw invalid_argument("{} has a negative size: [{}]", name, comma_separated(dims));
  }
  return PartialShape(dims);
}

}  // namespace

PartialShape element_shape_input(const InferContext& c, int i) {
  if (const Tensor* t = c.constant(i)) return spelled_shape(*t, "element_shape");
  const PartialShape& spelled = c.input(i);  // a scalar says that even the rank is not known
  return spelled.has_rank() && spelled.rank() == 1 ? c.constant_shape(i) : PartialShape::unknown();
}

PartialShape element_shape_input(const KernelContext& c, int i) { return spelled_shape(c.in(i), "element_shape"); }

PartialShape with_leading(int64_t first, const PartialShape& rest) {
  if (!rest.has_rank()) return PartialShape::unknown();
  Dims dims{first};
  dims.insert(dims.end(), rest.begin(), rest.end());
  return PartialShape(dims);
}

const TensorList& list_input(const KernelContext& c, int i, DType element_dtype) {
  const TensorList& list = tensor_list(c.in(i));
  if (list.element_dtype() != element_dtype) {
    throw invalid_argument("the list holds {}, asked for {}", dtype_name(list.element_dtype()),
                           dtype_name(element_dtype));
  }
  return list;
}

void check_item_fits(const TensorList& list, const Tensor& item) {
  if (!list.element_shape().compatible_with(item.shape())) {
    throw invalid_argument("an item of shape {} does not fit the element shape {} of the list", item.shape().str(),
                           list.element_shape().str());
  }
}

void check_index(const TensorList& list, int64_t index) {
  if (index < 0 || index >= list.size()) {
    throw invalid_argument("index {} is out of range: the list has {} items", index, list.size());
  }
}

Shape unwritten_shape(const TensorList& list, const PartialShape& asked, int64_t index) {
  if (!list.element_shape().compatible_with(asked)) {
    throw invalid_argument("the element shape {} asked for does not fit that of the list, {}", asked.str(),
                           list.element_shape().str());
  }
  PartialShape shape = list.element_shape().merged_with(asked);
  if (!shape.is_static()) {
    for (const auto& each : list.written()) {
      if (!shape.compatible_with(each.second.shape())) {
        throw invalid_argument("items differ in shape, {} and {}, so that of item {}, which nobody wrote, is unknown",
                               shape.str(), each.second.shape().str(), index);
      }
      shape = shape.merged_with(each.second.shape());
    }
  }
  if (!shape.is_static()) {
    throw invalid_argument("item {} was never written and the element shape {} says too little to read it as zeros",
                           index, shape.str());
  }
  return Shape(shape);
}

Tensor zeros_of(DType dtype, const Shape& shape) {
  Tensor t = Tensor::empty(dtype, shape);
  if (is_plain(dtype)) std::memset(t.mutable_data<char>(), 0, t.num_bytes());
  return t;
}

Tensor read_item(const TensorList& list, int64_t index, const PartialShape& asked) {
  const Tensor item = list.item(index);
  if (!item.defined()) return zeros_of(list.element_dtype(), unwritten_shape(list, asked, index));
  if (!asked.compatible_with(item.shape())) {
    throw invalid_argument("item {} has shape {}, asked for {}", index, item.shape().str(), asked.str());
  }
  return item.with_shape(item.shape());  // tapes tell reads apart
}

Tensor sample_list(std::vector<Tensor> items, const PartialShape& element_shape) {
  const DType dtype = items.front().dtype();
  return make_list_tensor(std::make_shared<const TensorList>(dtype, element_shape, std::move(items)));
}

void register_tensor_list_items(Registry& r) {
  const Tensor numbers3 = sample_list({Tensor(1.f), Tensor(2.f), Tensor(3.f)});
  const Tensor any_shape(-1);
  const Tensor scalar_item = Tensor::empty(DType::int32, {0});

  r.define<ListAttrs>("EmptyTensorList")
      .type("shape_type", index_types)
      .in_host("element_shape", "shape_type")
      .in_host("max_num_elements", DType::int32)
      .out("handle", DType::variant)
      .shape(list_made_with<1>)
      .forwards()
      .cpu([](KernelContext& c, const ListAttrs& a) {
        put_list(c, 0,
                 std::make_shared<const TensorList>(a.element_dtype, element_shape_input(c, 0), int64_t{0},
                                                    c.int_scalar(1)));
      })
      .doc("An empty list for items of one dtype and of shapes that fit element_shape.")
      .sample({.in = {Tensor{2, -1}, Tensor(-1)}}, {.element_dtype = DType::float32})
      .sample({.in = {Tensor{{1}}, Tensor(-1)}, .error = "must be a vector of sizes or the scalar -1"},
              {.element_dtype = DType::float32});

  r.define<ListAttrs>("TensorListReserve")
      .type("shape_type", index_types)
      .in_host("element_shape", "shape_type")
      .in_host("num_elements", DType::int32)
      .out("handle", DType::variant)
      .shape(list_made_with<1>)
      .forwards()
      .cpu([](KernelContext& c, const ListAttrs& a) {
        const int64_t n = c.int_scalar(1);
        if (n < 0) throw invalid_argument("a list of {} items", n);
        put_list(c, 0, std::make_shared<const TensorList>(a.element_dtype, element_shape_input(c, 0), n));
      })
      .doc("A list of num_elements items that nobody wrote yet; they read as zeros where their shape is known.")
      .sample({.in = {Tensor{2}, Tensor(3)}}, {.element_dtype = DType::float32})
      .sample({.in = {any_shape, Tensor(-2)}, .error = "a list of -2 items"}, {.element_dtype = DType::float32})
      .sample({.in = {any_shape, Tensor{3}}, .error = "must have rank 0"}, {.element_dtype = DType::float32});

  r.define("TensorListLength")
      .in("input_handle", DType::variant)
      .out_host("length", DType::int32)
      .shape(scalar_shape)
      .cpu([](KernelContext& c) { *c.out<int32_t>() = static_cast<int32_t>(tensor_list(c.in(0)).size()); })
      .doc("How many items a list has.")
      .sample({.in = {numbers3}, .out = {Tensor(3)}})
      .sample({.in = {Tensor::empty(DType::variant, {})}, .error = "the variant holds no TensorList but nothing"});

  r.define<ElementShapeAttrs>("TensorListElementShape")
      .in("input_handle", DType::variant)
      .out_host("element_shape", "shape_type")
      .shape(unknown_shape)
      .forwards()
      .cpu([](KernelContext& c, const ElementShapeAttrs& a) {
        const PartialShape& shape = tensor_list(c.in(0)).element_shape();
        Tensor out = list_ops::element_shape_tensor(shape);
        if (a.shape_type == DType::int64) {
          const Dims values = int_values(out);
          const Shape as_was = out.shape();
          out = Tensor::empty(DType::int64, as_was);
          std::copy(values.begin(), values.end(), out.mutable_data<int64_t>());
        }
        c.forward(0, out);
      })
      .doc("What every item of a list fits: a vector with -1 for unknown sizes, or -1 for any shape.")
      .sample({.in = {sample_list({Tensor{1.f, 2.f}}, PartialShape{kUnknownDim})}, .out = {Tensor{-1}}},
              {.shape_type = DType::int32})
      .sample({.in = {numbers3}, .out = {Tensor(int64_t{-1})}}, {.shape_type = DType::int64});

  r.define("TensorListPushBack")
      .in("input_handle", DType::variant)
      .type("element_dtype", all_types)
      .in("tensor")
      .out("output_handle", DType::variant)
      .shape(scalar_shape)
      .forwards()
      .any_device()
      .cpu([](KernelContext& c) {
        const TensorList& list = list_input(c, 0, c.in(1).dtype());
        check_item_fits(list, c.in(1));
        if (list.max_num_elements() >= 0 && list.size() >= list.max_num_elements()) {
          throw invalid_argument("the list is full: it may hold {} items", list.max_num_elements());
        }
        put_list(c, 0, list.changed(list.size() + 1, {{list.size(), c.in(1)}}));
      })
      .grad([](const GradCtx& g) {
        const auto popped = list_ops::pop_back(g.dy(), shape_arg(g.x(1)).tensor(), g.x(1).dtype());
        return Gradients{popped.list, popped.item};
      })
      .doc("The list with one more item at its end.")
      .sample({.make =
                   [] {
                     return std::vector<Tensor>{sample_list({Tensor(1.f), Tensor(2.f)}), Tensor(4.f)};
                   }})
      .sample({.in = {sample_list({Tensor{1.f, 2.f}}, PartialShape{2}), Tensor(4.f)},
               .error = "an item of shape [] does not fit the element shape [2] of the list"})
      .sample({.in = {numbers3, Tensor(4)}, .error = "the list holds float32, asked for int32"});

  r.define<ListAttrs>("TensorListPopBack")
      .in("input_handle", DType::variant)
      .in_host("element_shape", DType::int32)
      .out("output_handle", DType::variant)
      .out("tensor", "element_dtype")
      .shape([](InferContext& c) {
        c.output(0, PartialShape{});
        c.output(1, element_shape_input(c, 1));
      })
      .forwards()
      .cpu([](KernelContext& c, const ListAttrs& a) {
        const TensorList& list = list_input(c, 0, a.element_dtype);
        if (list.size() == 0) throw invalid_argument("nothing can be popped from an empty list");
        c.forward(1, read_item(list, list.size() - 1, element_shape_input(c, 1)));
        put_list(c, 0, list.changed(list.size() - 1, {}));
      })
      .grad([](const GradCtx& g) {
        return Gradients{list_ops::push_back(g.dy(0), g.dy(1)), {}};
      })
      .doc("The list without its last item, and that item.")
      .sample({.in = {sample_list({Tensor(1.f), Tensor(2.f)}), any_shape}}, {.element_dtype = DType::float32})
      .sample({.in = {make_list_tensor(std::make_shared<const TensorList>(DType::float32, PartialShape{}, int64_t{0})),
                      any_shape},
               .error = "nothing can be popped from an empty list"},
              {.element_dtype = DType::float32});

  r.define<ListAttrs>("TensorListGetItem")
      .in("input_handle", DType::variant)
      .in_host("index", DType::int32)
      .in_host("element_shape", DType::int32)
      .out("item", "element_dtype")
      .shape([](InferContext& c) { c.output(element_shape_input(c, 2)); })
      .forwards()
      .cpu([](KernelContext& c, const ListAttrs& a) {
        const TensorList& list = list_input(c, 0, a.element_dtype);
        const int64_t index = c.int_scalar(1);
        check_index(list, index);
        c.forward(0, read_item(list, index, element_shape_input(c, 2)));
      })
      .grad([](const GradCtx& g, const ListAttrs& a) {
        const Tensor nothing =
            list_ops::reserve(list_ops::element_shape(g.x(0)), list_ops::length(g.x(0)), a.element_dtype);
        return Gradients{list_ops::set_item(nothing, g.x(1), g.dy()), {}, {}};
      })
      .doc("Item number `index` of a list.")
      .sample({.in = {numbers3, Tensor(1), scalar_item}, .out = {Tensor(2.f)}}, {.element_dtype = DType::float32})
      .sample({.in = {sample_list({Tensor{1.f, 2.f}, Tensor()}), Tensor(1), any_shape}, .out = {Tensor{0.f, 0.f}}},
              {.element_dtype = DType::float32})
      .sample({.in = {make_list_tensor(std::make_shared<const TensorList>(DType::float32, PartialShape{2}, int64_t{4})),
                      Tensor(3), any_shape},
               .out = {Tensor{0.f, 0.f}}},
              {.element_dtype = DType::float32})
      .sample({.in = {make_list_tensor(
                          std::make_shared<const TensorList>(DType::float32, PartialShape::unknown(), int64_t{4})),
                      Tensor(3), any_shape},
               .error = "item 3 was never written and the element shape <unknown> says too little"},
              {.element_dtype = DType::float32})
      .sample({.in = {numbers3, Tensor(3), scalar_item}, .error = "index 3 is out of range: the list has 3 items"},
              {.element_dtype = DType::float32})
      .sample({.in = {numbers3, Tensor(0), Tensor{2}}, .error = "item 0 has shape [], asked for [2]"},
              {.element_dtype = DType::float32});

  r.define<SetItemAttrs>("TensorListSetItem")
      .in("input_handle", DType::variant)
      .in_host("index", DType::int32)
      .type("element_dtype", all_types)
      .in("item", "element_dtype")
      .out("output_handle", DType::variant)
      .shape(list_made_with<1>)
      .forwards()
      .any_device()
      .cpu([](KernelContext& c, const SetItemAttrs& a) {
        const TensorList& list = list_input(c, 0, c.in(2).dtype());
        const int64_t index = c.int_scalar(1);
        const bool longer = a.resize_if_index_out_of_bounds && index >= list.size();
        if (!longer) check_index(list, index);
        check_item_fits(list, c.in(2));
        put_list(c, 0, list.changed(longer ? index + 1 : list.size(), {{index, c.in(2)}}));
      })
      .grad([](const GradCtx& g, const SetItemAttrs& a) {
        const Tensor& item = g.x(2);
        auto rest = [&] {
          const Tensor others = list_ops::set_item(g.dy(), g.x(1), zeros_like(item));
          // The write may have made the list longer.
          return a.resize_if_index_out_of_bounds ? list_ops::resize(others, list_ops::length(g.x(0))) : others;
        };
        auto written = [&] { return list_ops::get_item(g.dy(), g.x(1), shape_arg(item).tensor(), item.dtype()); };
        return Gradients{g.want(0, rest), {}, g.want(2, written)};
      })
      .doc("The list with another item at `index`.")
      .sample({.make =
                   [] {
                     return std::vector<Tensor>{sample_list({Tensor(1.f)}), Tensor(0), Tensor(7.f)};
                   }})
      .sample({.make =
                   [] {
                     return std::vector<Tensor>{sample_list({Tensor(1.f)}), Tensor(5), Tensor(7.f)};
                   }},
              {.resize_if_index_out_of_bounds = true})
      .sample({.in = {numbers3, Tensor(5), Tensor(7.f)}, .error = "index 5 is out of range: the list has 3 items"})
      .sample({.in = {numbers3, Tensor(-1), Tensor(7.f)}, .error = "index -1 is out of range"},
              {.resize_if_index_out_of_bounds = true});

  r.define("TensorListResize")
      .in("input_handle", DType::variant)
      .in_host("size", DType::int32)
      .out("output_handle", DType::variant)
      .shape(list_made_with<1>)
      .forwards()
      .cpu([](KernelContext& c) {
        const int64_t size = c.int_scalar(1);
        if (size < 0) throw invalid_argument("a list of {} items", size);
        put_list(c, 0, tensor_list(c.in(0)).changed(size, {}));
      })
      .grad([](const GradCtx& g) {
        return Gradients{list_ops::resize(g.dy(), list_ops::length(g.x(0))), {}};
      })
      .doc("The list with another number of items: the last ones go, or unwritten ones come.")
      .sample({.in = {numbers3, Tensor(2)}})
      .sample({.in = {numbers3, Tensor(-1)}, .error = "a list of -1 items"});
}

namespace list_ops {

Tensor element_shape_tensor(const PartialShape& shape) {
  if (!shape.has_rank()) return Tensor(-1);
  Tensor t = Tensor::empty(DType::int32, Shape{shape.rank()});
  for (int i = 0; i < shape.rank(); ++i) t.mutable_data<int32_t>()[i] = static_cast<int32_t>(shape[i]);
  return t;
}

Tensor row_shape(const Tensor& t) {
  const PartialShape shape = t.partial_shape();
  if (shape.has_rank()) {
    const Dims rest(shape.begin() + 1, shape.end());
    if (PartialShape(rest).is_static()) return element_shape_tensor(PartialShape(rest));
  }
  return slice(runnel::shape(t), {1}, {-1});
}

Tensor empty(const Tensor& element_shape, DType element_dtype, const Operand& max_num_elements) {
  static const Op<ListAttrs> op("EmptyTensorList");
  return op({element_shape, max_num_elements}, {.element_dtype = element_dtype});
}
Tensor reserve(const Tensor& element_shape, const Operand& num_elements, DType element_dtype) {
  static const Op<ListAttrs> op("TensorListReserve");
  return op({element_shape, num_elements}, {.element_dtype = element_dtype});
}
Tensor length(const Tensor& list) {
  static const Op op("TensorListLength");
  return op({list});
}
Tensor element_shape(const Tensor& list, DType shape_type) {
  static const Op<ElementShapeAttrs> op("TensorListElementShape");
  return op({list}, {.shape_type = shape_type});
}
Tensor push_back(const Tensor& list, const Operand& item) {
  static const Op op("TensorListPushBack");
  return op({list, item});
}
Popped pop_back(const Tensor& list, const Tensor& element_shape, DType element_dtype) {
  static const Op<ListAttrs> op("TensorListPopBack");
  auto out = op.many({list, element_shape}, {.element_dtype = element_dtype});
  return {out[0], out[1]};
}
Tensor get_item(const Tensor& list, const Operand& index, const Tensor& element_shape, DType element_dtype) {
  static const Op<ListAttrs> op("TensorListGetItem");
  return op({list, index, element_shape}, {.element_dtype = element_dtype});
}
Tensor set_item(const Tensor& list, const Operand& index, const Operand& item, bool resize) {
  static const Op<SetItemAttrs> op("TensorListSetItem");
  return op({list, index, item}, {.resize_if_index_out_of_bounds = resize});
}
Tensor resize(const Tensor& list, const Operand& size) {
  static const Op op("TensorListResize");
  return op({list, size});
}

}  // namespace list_ops
}  // namespace runnel
