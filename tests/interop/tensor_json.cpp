#include "tests/interop/tensor_json.h"

#include "runnel/ops/tensor_list.h"
#include "tools/attr_json.h"

namespace runnel::interop {
namespace {
using nlohmann::json;

json shape_to_json(const PartialShape& shape) {
  return shape.has_rank() ? json(std::vector<int64_t>(shape.begin(), shape.end())) : json();
}
}  // namespace

std::string hex(const void* data, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::string text(2 * size, '0');
  for (size_t i = 0; i < size; ++i) {
    text[2 * i] = kDigits[bytes[i] >> 4];
    text[2 * i + 1] = kDigits[bytes[i] & 15];
  }
  return text;
}

json tensor_to_json(const Tensor& t) {
  if (!t.defined()) return json();
  json j = {{"d", dtype_name(t.dtype())}, {"s", shape_to_json(t.shape())}};
  if (t.dtype() == DType::string) {
    json texts = json::array();
    for (const Bytes& each : t.host<Bytes>()) {
      const std::string text = each.str();
      texts.push_back(hex(text.data(), text.size()));
    }
    j["x"] = texts;
  } else if (t.dtype() == DType::variant && t.rank() == 0) {
    const auto* list = dynamic_cast<const TensorList*>(t.data<VariantValue>()->object.get());
    if (!list) return {{"handle", "variant"}};
    return {
        {"list", list_to_json(list->items(), list->element_dtype(), list->element_shape(), list->max_num_elements())}};
  } else if (!is_plain(t.dtype())) {
    return {{"handle", dtype_name(t.dtype())}};
  } else {
    const Tensor host = t.to_host();
    j["x"] = hex(host.raw(), host.num_bytes());
  }
  return j;
}

json list_to_json(const std::vector<Tensor>& items, DType element_dtype, const PartialShape& element_shape,
                  int64_t max_num_elements) {
  json all = json::array();
  for (const Tensor& item : items) all.push_back(tensor_to_json(item));
  return {{"items", all},
          {"dtype", dtype_name(element_dtype)},
          {"shape", shape_to_json(element_shape)},
          {"max", max_num_elements}};
}

json attr_value_to_json(const AttrValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return hex(text->data(), text->size());
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    json all = json::array();
    for (const std::string& text : *texts) all.push_back(hex(text.data(), text.size()));
    return all;
  }
  if (const auto* tensor = std::get_if<Tensor>(&value)) return tensor_to_json(*tensor);
  return tools::attr_to_json(value);
}

}  // namespace runnel::interop
