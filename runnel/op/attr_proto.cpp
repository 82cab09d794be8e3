#include "runnel/op/attr_proto.h"

#include <google/protobuf/stubs/logging.h>

#include <charconv>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/op/attr_bytes.h"
#include "runnel/tensor/tensor_proto.h"

namespace runnel {
namespace {

double decimal(float v) {
  if (!std::isfinite(v)) return v;
  char text[32];
  const auto written = std::to_chars(text, text + sizeof(text), v);
  double out = v;
  std::from_chars(text, written.ptr, out);
  return out;
}

const char* kind_name(const pb::AttrValue& proto) {
  switch (proto.value_case()) {
    case pb::AttrValue::kS: return "string";
    case pb::AttrValue::kI: return "int";
    case pb::AttrValue::kF: return "float";
    case pb::AttrValue::kB: return "bool";
    case pb::AttrValue::kType: return "type";
    case pb::AttrValue::kShape: return "shape";
    case pb::AttrValue::kTensor: return "tensor";
    case pb::AttrValue::kList: return "list";
    case pb::AttrValue::kFunc: return "func";
    case pb::AttrValue::kPlaceholder: return "placeholder";
    case pb::AttrValue::VALUE_NOT_SET: return "nothing";
  }
  return "nothing";
}

struct Writer {
  pb::AttrValue& to;
  void operator()(int64_t v) const { to.set_i(v); }
  void operator()(double v) const { to.set_f(static_cast<float>(v)); }
  void operator()(bool v) const { to.set_b(v); }
  void operator()(const std::string& v) const { to.set_s(v); }
  void operator()(DType v) const { to.set_type(dtype_to_proto(v)); }
  void operator()(const PartialShape& v) const { shape_to_proto(v, *to.mutable_shape()); }
  void operator()(const Tensor& v) const { tensor_to_proto(v, *to.mutable_tensor()); }
  void operator()(const std::vector<int64_t>& list) const {
    for (int64_t v : list) to.mutable_list()->add_i(v);
  }
  void operator()(const std::vector<double>& list) const {
    for (double v : list) to.mutable_list()->add_f(static_cast<float>(v));
  }
  void operator()(const std::vector<std::string>& list) const {
    for (const std::string& v : list) to.mutable_list()->add_s(v);
  }
  void operator()(const std::vector<DType>& list) const {
    for (DType v : list) to.mutable_list()->add_type(dtype_to_proto(v));
  }
  void operator()(const std::vector<PartialShape>& list) const {
    for (const PartialShape& v : list) shape_to_proto(v, *to.mutable_list()->add_shape());
  }
  void operator()(const FuncAttr& v) const { to.mutable_func()->set_name(v.name); }
  void operator()(const std::vector<FuncAttr>& list) const {
    for (const FuncAttr& v : list) to.mutable_list()->add_func()->set_name(v.name);
  }
};

struct Reader {
  const pb::AttrValue& from;
  void require(bool fits, const char* wanted) const {
    if (!fits) throw invalid_argument("[AttrValue] {} needed, got {}", wanted, kind_name(from));
  }
  // A list in a file may hold values of one kind only; others there are a mistake.
  const pb::AttrValue::ListValue& list(int count, const char* wanted) const {
    require(from.has_list(), wanted);
    const auto& l = from.list();
    const int all = l.s_size() + l.i_size() + l.f_size() + l.b_size() + l.type_size() + l.shape_size() +
                    l.tensor_size() + l.func_size();
    if (all != count) throw invalid_argument("[AttrValue] {} needed, got a list of something else", wanted);
    return l;
  }
  AttrValue operator()(int64_t) const {
    require(from.value_case() == pb::AttrValue::kI, "int");
    return from.i();
  }
  AttrValue operator()(double) const {
    require(from.value_case() == pb::AttrValue::kF, "float");
    return decimal(from.f());
  }
  AttrValue operator()(bool) const {
    require(from.value_case() == pb::AttrValue::kB, "bool");
    return from.b();
  }
  AttrValue operator()(const std::string&) const {
    require(from.value_case() == pb::AttrValue::kS, "string");
    return from.s();
  }
  AttrValue operator()(DType) const {
    require(from.value_case() == pb::AttrValue::kType, "type");
    return from.type() == 0 ? DType::invalid : dtype_from_proto(from.type());
  }
  AttrValue operator()(const PartialShape&) const {
    require(from.value_case() == pb::AttrValue::kShape, "shape");
    return shape_from_proto(from.shape());
  }
  AttrValue operator()(const Tensor&) const {
    require(from.value_case() == pb::AttrValue::kTensor, "tensor");
    return tensor_from_proto(from.tensor());
  }
  AttrValue operator()(const std::vector<int64_t>&) const {
    const auto& values = list(from.list().i_size(), "list(int)").i();
    return std::vector<int64_t>(values.begin(), values.end());
  }
  AttrValue operator()(const std::vector<double>&) const {
    std::vector<double> out;
    for (float v : list(from.list().f_size(), "list(float)").f()) out.push_back(decimal(v));
    return out;
  }
  AttrValue operator()(const std::vector<std::string>&) const {
    const auto& values = list(from.list().s_size(), "list(string)").s();
    return std::vector<std::string>(values.begin(), values.end());
  }
  AttrValue operator()(const std::vector<DType>&) const {
    std::vector<DType> out;
    for (int v : list(from.list().type_size(), "list(type)").type()) out.push_back(dtype_from_proto(v));
    return out;
  }
  AttrValue operator()(const std::vector<PartialShape>&) const {
    std::vector<PartialShape> out;
    for (const auto& v : list(from.list().shape_size(), "list(shape)").shape()) out.push_back(shape_from_proto(v));
    return out;
  }
  // Functions are read by name; who reads the library of functions gives them their bodies.
  AttrValue operator()(const FuncAttr&) const {
    require(from.value_case() == pb::AttrValue::kFunc, "func");
    return FuncAttr{from.func().name(), nullptr};
  }
  AttrValue operator()(const std::vector<FuncAttr>&) const {
    std::vector<FuncAttr> out;
    for (const auto& v : list(from.list().func_size(), "list(func)").func()) out.push_back({v.name(), nullptr});
    return out;
  }
};

}  // namespace

void attr_to_proto(const AttrValue& value, pb::AttrValue& proto) {
  proto.Clear();
  if (value.index() >= AttrValue(std::vector<int64_t>()).index() && !std::holds_alternative<Tensor>(value) &&
      !std::holds_alternative<FuncAttr>(value)) {
    proto.mutable_list();  // also when it is empty
  }
  std::visit(Writer{proto}, value);
}

AttrValue attr_from_proto(const pb::AttrValue& proto, const AttrValue& like) { return std::visit(Reader{proto}, like); }

std::string serialize_attr(const AttrValue& value) {
  pb::AttrValue proto;
  attr_to_proto(value, proto);
  return proto.SerializeAsString();
}

AttrValue parse_attr(std::string_view bytes, const AttrValue& like) {
  const google::protobuf::LogSilencer silent;  // the Error says it
  pb::AttrValue proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw make_error(Code::data_loss, "[AttrValue] {} bytes that are no such message", bytes.size());
  }
  return attr_from_proto(proto, like);
}

}  // namespace runnel
