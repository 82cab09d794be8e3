#include "runnel/tensor/dtype.h"

#include <array>
#include <ostream>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"

namespace runnel {
namespace {

struct Info {
  const char* name = nullptr;
  size_t size = 0;
};

constexpr std::array<Info, kNumDTypes> make_infos() {
  std::array<Info, kNumDTypes> infos{};
  auto set = [&](DType t, const char* name, size_t size) { infos[static_cast<size_t>(t)] = {name, size}; };
  set(DType::float32, "float32", 4);
  set(DType::float64, "float64", 8);
  set(DType::int32, "int32", 4);
  set(DType::uint8, "uint8", 1);
  set(DType::int16, "int16", 2);
  set(DType::int8, "int8", 1);
  set(DType::string, "string", sizeof(Bytes));
  set(DType::complex64, "complex64", 8);
  set(DType::int64, "int64", 8);
  set(DType::bool_, "bool", 1);
  set(DType::bfloat16, "bfloat16", 2);
  set(DType::uint16, "uint16", 2);
  set(DType::complex128, "complex128", 16);
  set(DType::float16, "float16", 2);
  set(DType::resource, "resource", sizeof(ResourceHandle));
  set(DType::variant, "variant", sizeof(VariantValue));
  set(DType::uint32, "uint32", 4);
  set(DType::uint64, "uint64", 8);
  return infos;
}
constexpr auto kInfos = make_infos();

}  // namespace

Bytes::Bytes(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  view_ = *owner;
  owner_ = std::move(owner);
}

const char* dtype_name(DType dtype) {
  const char* name = static_cast<int>(dtype) < kNumDTypes ? kInfos[static_cast<size_t>(dtype)].name : nullptr;
  return name ? name : "invalid";
}

size_t dtype_size(DType dtype) { return kInfos[static_cast<size_t>(dtype)].size; }

DType dtype_from_name(std::string_view name, SourceSite where) {
  for (size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name && name == kInfos[i].name) return static_cast<DType>(i);
  }
  throw at_line(invalid_argument("no dtype is called '{}'", name), where);
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << dtype_name(dtype); }

}  // namespace runnel
