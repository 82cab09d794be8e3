#include "tests/interop/prepared.h"

#include <algorithm>

#include "runnel/graph/graph_function.h"
#include "runnel/graph/tracer.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/tensor_list.h"
#include "runnel/tensor/type_sets.h"
#include "tests/interop/tensor_json.h"
#include "tests/suite/values.h"

namespace runnel::interop {
namespace {

using nlohmann::json;

// Two inputs may be equal, but are never one: a tape would add up what it finds for both.
Tensor copy(const Tensor& t) {
  Tensor made = Tensor::empty(t.dtype(), t.shape());
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> == t.dtype()) std::copy_n(t.data<T>(), t.num_elements(), made.mutable_data<T>());
  });
  return made;
}

Tensor list(const Given& g) {
  if (g.max_num_elements < 0) {
    return make_list_tensor(std::make_shared<const TensorList>(g.element_dtype, g.element_shape, g.items));
  }
  std::shared_ptr<const TensorList> made =
      std::make_shared<const TensorList>(g.element_dtype, g.element_shape, int64_t{0}, g.max_num_elements);
  TensorList::Writes writes;
  for (size_t i = 0; i < g.items.size(); ++i) {
    if (g.items[i].defined()) writes.emplace_back(static_cast<int64_t>(i), g.items[i]);
  }
  return make_list_tensor(made->changed(static_cast<int64_t>(g.items.size()), writes));
}

Prepared::Table table(const Given& g) {
  const DType key = g.value.dtype(), value = g.table_values.dtype();
  const PartialShape value_shape =
      g.table_values.rank() > 1 ? PartialShape(Dims(g.table_values.shape().begin() + 1, g.table_values.shape().end()))
                                : PartialShape{};
  std::vector<std::pair<std::string, AttrValue>> attrs{{"value_dtype", value}};
  std::vector<Tensor> marks;
  if (g.dense) {
    marks = {Tensor(int64_t{-7}), Tensor(int64_t{-8})};
    attrs.emplace_back("initial_num_buckets", int64_t{4});
  } else {
    attrs.emplace_back("key_dtype", key);
  }
  if (g.dense || value_shape.rank() > 0) attrs.emplace_back("value_shape", value_shape);
  const char* op = g.dense                  ? "AnonymousMutableDenseHashTable"
                   : value_shape.rank() > 0 ? "AnonymousMutableHashTableOfTensors"
                                            : "AnonymousMutableHashTable";
  const Tensor handle = call_op(op, marks, attrs)[0];
  call_op("LookupTableInsertV2", {handle, g.value, g.table_values});
  return {handle, key, value};
}

bool continuous(const Tensor& t) { return is_float(t.dtype()) || is_complex(t.dtype()); }

Tensor cotangent(const Tensor& like, size_t number) {
  Tensor dy = Tensor::empty(like.dtype(), like.shape());
  floating_or_complex.for_each([&]<class T>() {
    if (dtype_of<T> != dy.dtype()) return;
    for (int64_t i = 0; i < dy.num_elements(); ++i) {
      const int64_t k = (i * 7 + 3 * static_cast<int64_t>(number)) % 16;
      const test::Value v(static_cast<long double>(k < 8 ? k - 8 : k - 7) / 8,
                          is_complex(dy.dtype()) ? static_cast<long double>(k % 5 + 1) / 8 : 0);
      test::store<T>(v, dy.mutable_data<T>()[i]);
    }
  });
  return dy;
}

}  // namespace

Prepared::Prepared(const Call& call) {
  for (const Given& g : call.in) {
    switch (g.kind) {
      case Given::Kind::value: in.push_back(copy(g.value)); break;
      case Given::Kind::variable:
        variables.emplace_back(g.value, VariableOptions{.shape = PartialShape::unknown()});
        in.push_back(variables.back().handle());
        break;
      case Given::Kind::table:
        tables.push_back(table(g));
        in.push_back(tables.back().handle);
        break;
      case Given::Kind::list: in.push_back(list(g));
    }
  }
}

json Prepared::state() const {
  json all = json::array();
  for (const Variable& v : variables) all.push_back(tensor_to_json(v.value()));
  for (const Table& t : tables) {
    const auto contents = call_op("LookupTableExportV2", {t.handle}, {{"Tkeys", t.key}, {"Tvalues", t.value}});
    all.push_back({{"table", {tensor_to_json(contents[0]), tensor_to_json(contents[1])}}});
  }
  return all;
}

std::vector<Tensor> run_in_graph(const Call& call, const std::vector<Tensor>& inputs, How how) {
  Tracer tracer("interop");
  std::vector<Tensor> in;
  std::vector<Tensor> values;
  for (const Tensor& t : inputs) {
    if (t.dtype() == DType::resource) {
      in.push_back(t);
      continue;
    }
    in.push_back(tracer.add_parameter(
        t.dtype(), how == How::ranks ? PartialShape::unknown_dims(t.rank()) : PartialShape::unknown()));
    values.push_back(t);
  }
  tracer.open();
  tracer.set_outputs(call_op(call.op->name, in, call.attrs));
  tracer.close();
  const GraphFunction f(tracer.graph());
  values.insert(values.end(), tracer.captures().begin(), tracer.captures().end());
  return f.run(values);
}

Derivative derivative(const Call& call, const Prepared& prepared, GradientTape& tape) {
  Derivative d;
  for (size_t i = 0; i < prepared.in.size(); ++i) {
    if (call.in[i].kind != Given::Kind::value || !continuous(prepared.in[i])) continue;
    tape.watch(prepared.in[i]);
    d.by.emplace_back(prepared.in[i]);
    d.sources.push_back(i);
  }
  for (const Tensor& y : call_op(call.op->name, prepared.in, call.attrs)) {
    if (!y.defined() || !continuous(y)) continue;
    d.of.push_back(y);
    d.dy.push_back(cotangent(y, d.of.size()));
  }
  return d;
}

}  // namespace runnel::interop
