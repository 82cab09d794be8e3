#include "tools/attr_json.h"
#include "runnel/tensor/type_sets.h"

#include <cmath>

#include "runnel/base/format.h"

namespace runnel::tools {
namespace {

using nlohmann::json;

json to_json(int64_t v) { return v; }
json to_json(bool v) { return v; }
json to_json(const std::string& v) { return v; }
json to_json(DType v) { return v == DType::invalid ? json() : json(dtype_name(v)); }
json to_json(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}
json to_json(const PartialShape& v) { return v.has_rank() ? json(std::vector<int64_t>(v.begin(), v.end())) : json(); }
json to_json(const FuncAttr& v) { return v.name; }
json to_json(const Tensor& v) {
  if (!v.defined()) return json();
  json values = json::array();
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> != v.dtype()) return;
    for (const T& e : v.host<T>()) {
      if constexpr (std::is_same_v<T, Bytes>) {
        values.push_back(e.str());
      } else if constexpr (is_complex(dtype_of<T>)) {
        values.push_back({to_json(static_cast<double>(e.real())), to_json(static_cast<double>(e.imag()))});
      } else if constexpr (is_float(dtype_of<T>)) {
        values.push_back(to_json(static_cast<double>(e)));
      } else {
        values.push_back(e);
      }
    }
  });
  return {{"dtype", dtype_name(v.dtype())}, {"shape", to_json(PartialShape(v.shape()))}, {"values", values}};
}
template <class T>
json to_json(const std::vector<T>& list) {
  json all = json::array();
  for (const T& v : list) all.push_back(to_json(v));
  return all;
}

template <class T>
T read(const json& j) {
  return j.get<T>();
}
template <>
double read<double>(const json& j) {
  return j.is_string() ? std::stod(j.get<std::string>()) : j.get<double>();
}
template <>
DType read<DType>(const json& j) {
  return j.is_null() ? DType::invalid : dtype_from_name(j.get<std::string>());
}
template <>
PartialShape read<PartialShape>(const json& j) {
  if (j.is_null()) return PartialShape::unknown();
  const auto dims = j.get<std::vector<int64_t>>();
  return PartialShape(std::span<const int64_t>(dims));
}
template <>
Tensor read<Tensor>(const json& j) {
  if (j.is_null()) return {};
  Tensor t = Tensor::empty(read<DType>(j.at("dtype")), Shape(j.at("shape").get<std::vector<int64_t>>()));
  const json& values = j.at("values");
  if (static_cast<int64_t>(values.size()) != t.num_elements()) {
    throw invalid_argument("{} values for a tensor of shape {}", values.size(), t.shape().str());
  }
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> != t.dtype()) return;
    for (size_t i = 0; i < values.size(); ++i) {
      T& to = t.mutable_data<T>()[i];
      if constexpr (std::is_same_v<T, Bytes>) {
        to = Bytes(values[i].get<std::string>());
      } else if constexpr (is_complex(dtype_of<T>)) {
        using R = typename T::value_type;
        to = T(static_cast<R>(read<double>(values[i][0])), static_cast<R>(read<double>(values[i][1])));
      } else if constexpr (HalfFloat<T>) {
        to = T(static_cast<float>(read<double>(values[i])));
      } else if constexpr (is_float(dtype_of<T>)) {
        to = static_cast<T>(read<double>(values[i]));
      } else {
        to = values[i].get<T>();
      }
    }
  });
  return t;
}
template <class T>
std::vector<T> read_list(const json& j) {
  std::vector<T> list;
  for (const json& v : j) list.push_back(read<T>(v));
  return list;
}

AttrValue from_json(const json& j, const std::string& type) {
  if (type == "int") return read<int64_t>(j);
  if (type == "float") return read<double>(j);
  if (type == "bool") return read<bool>(j);
  if (type == "string") return read<std::string>(j);
  if (type == "type") return read<DType>(j);
  if (type == "shape") return read<PartialShape>(j);
  if (type == "tensor") return read<Tensor>(j);
  if (type == "list(int)") return read_list<int64_t>(j);
  if (type == "list(float)") return read_list<double>(j);
  if (type == "list(string)") return read_list<std::string>(j);
  if (type == "list(type)") return read_list<DType>(j);
  if (type == "list(shape)") return read_list<PartialShape>(j);
  throw invalid_argument("no attribute is of type '{}'", type);
}

}  // namespace

json attr_to_json(const AttrValue& value) {
  return std::visit([](const auto& v) { return to_json(v); }, value);
}

AttrValue attr_from_json(const json& json, const std::string& type) {
  try {
    return from_json(json, type);
  } catch (const nlohmann::json::exception& e) {
    throw invalid_argument("{} is no value of an attribute of type {}: {}", json.dump(), type, e.what());
  }
}

}  // namespace runnel::tools
