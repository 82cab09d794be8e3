#include "runnel/tensor/tensor_proto.h"

#include <google/protobuf/stubs/logging.h>

#include <limits>

#include "runnel/base/format.h"
#include "runnel/base/varint.h"
#include "runnel/tensor/serialize.h"
#include "runnel/tensor/type_sets.h"

namespace runnel {
namespace {

constexpr int kReference = 100;

// The field that holds elements of T one by one: how many values it has, a value as T, and how to add one.
template <class T>
struct Values;

#define RUNNEL_PLAIN_VALUES(type, field, wire)                                                   \
  template <>                                                                                    \
  struct Values<type> {                                                                          \
    static int count(const pb::TensorProto& p) { return p.field##_size(); }                      \
    static type at(const pb::TensorProto& p, int i) { return static_cast<type>(p.field(i)); }    \
    static void add(pb::TensorProto& p, type value) { p.add_##field(static_cast<wire>(value)); } \
  };
RUNNEL_PLAIN_VALUES(float, float_val, float)
RUNNEL_PLAIN_VALUES(double, double_val, double)
RUNNEL_PLAIN_VALUES(int32_t, int_val, int32_t)
RUNNEL_PLAIN_VALUES(uint8_t, int_val, int32_t)
RUNNEL_PLAIN_VALUES(int8_t, int_val, int32_t)
RUNNEL_PLAIN_VALUES(uint16_t, int_val, int32_t)
RUNNEL_PLAIN_VALUES(int16_t, int_val, int32_t)
RUNNEL_PLAIN_VALUES(int64_t, int64_val, int64_t)
RUNNEL_PLAIN_VALUES(uint32_t, uint32_val, uint32_t)
RUNNEL_PLAIN_VALUES(uint64_t, uint64_val, uint64_t)
RUNNEL_PLAIN_VALUES(bool, bool_val, bool)
#undef RUNNEL_PLAIN_VALUES

template <class T>
struct HalfValues {
  static int count(const pb::TensorProto& p) { return p.half_val_size(); }
  static T at(const pb::TensorProto& p, int i) { return std::bit_cast<T>(static_cast<uint16_t>(p.half_val(i))); }
  static void add(pb::TensorProto& p, T value) { p.add_half_val(std::bit_cast<uint16_t>(value)); }
};
template <>
struct Values<Half> : HalfValues<Half> {};
template <>
struct Values<BFloat16> : HalfValues<BFloat16> {};

template <>
struct Values<std::complex<float>> {
  static int count(const pb::TensorProto& p) { return p.scomplex_val_size() / 2; }
  static std::complex<float> at(const pb::TensorProto& p, int i) {
    return {p.scomplex_val(2 * i), p.scomplex_val(2 * i + 1)};
  }
  static void add(pb::TensorProto& p, std::complex<float> value) {
    p.add_scomplex_val(value.real());
    p.add_scomplex_val(value.imag());
  }
};
template <>
struct Values<std::complex<double>> {
  static int count(const pb::TensorProto& p) { return p.dcomplex_val_size() / 2; }
  static std::complex<double> at(const pb::TensorProto& p, int i) {
    return {p.dcomplex_val(2 * i), p.dcomplex_val(2 * i + 1)};
  }
  static void add(pb::TensorProto& p, std::complex<double> value) {
    p.add_dcomplex_val(value.real());
    p.add_dcomplex_val(value.imag());
  }
};
template <>
struct Values<Bytes> {
  static int count(const pb::TensorProto& p) { return p.string_val_size(); }
  static Bytes at(const pb::TensorProto& p, int i) { return Bytes(p.string_val(i)); }
  static void add(pb::TensorProto& p, const Bytes& value) { p.add_string_val(value.view().data(), value.size()); }
};

// tensor_content of strings: their lengths as varints, then their bytes.
void read_string_content(const std::string& content, const Tensor& t) {
  const char* p = content.data();
  const char* end = p + content.size();
  std::vector<uint64_t> lengths(static_cast<size_t>(t.num_elements()));
  for (uint64_t& n : lengths) {
    p = get_varint(p, end, &n);
    if (p == nullptr) throw make_error(Code::data_loss, "[TensorProto] the lengths of its strings are cut short");
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > static_cast<uint64_t>(end - p)) {
      throw make_error(Code::data_loss, "[TensorProto] string {} has {} bytes, {} are left", i, lengths[i], end - p);
    }
    t.mutable_data<Bytes>()[i] = Bytes(std::string(p, lengths[i]));
    p += lengths[i];
  }
  if (p != end) throw make_error(Code::data_loss, "[TensorProto] {} bytes after its strings", end - p);
}

template <class T>
void read_content(const std::string& content, const Tensor& t) {
  if constexpr (std::is_same_v<T, Bytes>) {
    read_string_content(content, t);
  } else {
    if (content.size() != t.num_bytes()) {
      throw make_error(Code::data_loss, "[TensorProto] {}{} needs {} bytes, tensor_content has {}",
                       dtype_name(t.dtype()), t.shape().str(), t.num_bytes(), content.size());
    }
    if constexpr (std::is_same_v<T, bool>) {  // any byte may stand in a file, 0 and 1 only in memory
      for (size_t i = 0; i < content.size(); ++i) t.mutable_data<bool>()[i] = content[i] != 0;
    } else {
      std::memcpy(t.mutable_data<char>(), content.data(), content.size());
    }
  }
}

template <class T>
void read_values(const pb::TensorProto& proto, const Tensor& t) {
  const int64_t count = Values<T>::count(proto);
  const int64_t n = t.num_elements();
  if (count > n) {
    throw invalid_argument("[TensorProto] {} values for {}{}", count, dtype_name(t.dtype()), t.shape().str());
  }
  T* to = t.mutable_data<T>();
  for (int64_t i = 0; i < count; ++i) to[i] = Values<T>::at(proto, static_cast<int>(i));
  const T last = count > 0 ? to[count - 1] : T();
  std::fill(to + count, to + n, last);
}

// The elements of a shape out of a file; throws where there are more bytes than allowed.
Shape checked_shape(const pb::TensorProto& proto, DType dtype, size_t max_bytes) {
  const PartialShape shape = shape_from_proto(proto.tensor_shape());
  if (!shape.is_static()) {
    throw invalid_argument("[TensorProto] the shape {} is not fully known", shape.str());
  }
  bool empty = false;
  for (int64_t d : shape) empty = empty || d == 0;
  uint64_t room = max_bytes / std::max<size_t>(1, dtype_size(dtype));
  for (int64_t d : shape) {
    if (empty || d == 1) continue;
    room /= static_cast<uint64_t>(d);
    if (room == 0) {
      throw make_error(Code::resource_exhausted, "[TensorProto] {}{} takes more than {} bytes", dtype_name(dtype),
                       shape.str(), max_bytes);
    }
  }
  return Shape(shape);
}

}  // namespace

DType dtype_from_proto(int number) {
  if (number > kReference) number -= kReference;
  const auto dtype = static_cast<DType>(number);
  if (number <= 0 || number >= kNumDTypes || !(all_types.contains(dtype))) {
    throw make_error(Code::unimplemented, "[DataType] there is no dtype with TensorFlow's number {}", number);
  }
  return dtype;
}

pb::DataType dtype_to_proto(DType dtype) { return static_cast<pb::DataType>(dtype); }

PartialShape shape_from_proto(const pb::TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    if (proto.dim_size() > 0) {
      throw invalid_argument("[TensorShapeProto] an unknown rank, but {} dimensions", proto.dim_size());
    }
    return PartialShape::unknown();
  }
  constexpr int kMaxRank = 254;  // TensorFlow's
  if (proto.dim_size() > kMaxRank) {
    throw invalid_argument("[TensorShapeProto] {} dimensions; {} are the most", proto.dim_size(), kMaxRank);
  }
  Dims dims;
  for (const auto& dim : proto.dim()) {
    if (dim.size() < kUnknownDim) throw invalid_argument("[TensorShapeProto] a dimension of size {}", dim.size());
    dims.push_back(dim.size());
  }
  return PartialShape(dims);
}

void shape_to_proto(const PartialShape& shape, pb::TensorShapeProto& proto) {
  proto.Clear();
  if (!shape.has_rank()) proto.set_unknown_rank(true);
  for (int64_t d : shape) proto.add_dim()->set_size(d);
}

Tensor tensor_from_proto(const pb::TensorProto& proto, size_t max_bytes) {
  const DType dtype = dtype_from_proto(proto.dtype());
  if (dtype == DType::resource || dtype == DType::variant) {
    throw make_error(Code::unimplemented, "[TensorProto] a {} cannot be read from a file", dtype_name(dtype));
  }
  Tensor t = Tensor::empty(dtype, checked_shape(proto, dtype, max_bytes));
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> != dtype) return;
    if (!proto.tensor_content().empty()) {
      read_content<T>(proto.tensor_content(), t);
    } else {
      read_values<T>(proto, t);
    }
  });
  return t;
}

namespace {
// Tensors of more elements than `most_listed` are written as their bytes, others (and strings) as a list of values.
void write_tensor(const Tensor& tensor, int64_t most_listed, pb::TensorProto& proto) {
  if (!tensor.defined() || tensor.is_symbolic() || !data_types.contains(tensor.dtype())) {
    throw invalid_argument("[TensorProto] {} cannot be written to a file",
                           !tensor.defined()      ? std::string("no tensor at all")
                           : tensor.is_symbolic() ? std::string("a tensor without a value (of a graph being built)")
                                                  : fmt::format("a {}", dtype_name(tensor.dtype())));
  }
  const Tensor t = tensor.to_host();
  proto.Clear();
  proto.set_dtype(dtype_to_proto(t.dtype()));
  shape_to_proto(t.shape(), *proto.mutable_tensor_shape());
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> != t.dtype()) return;
    if (is_plain(t.dtype()) && t.num_elements() > most_listed) {
      proto.set_tensor_content(t.raw(), t.num_bytes());
    } else {
      for (int64_t i = 0; i < t.num_elements(); ++i) Values<T>::add(proto, t.data<T>()[i]);
    }
  });
}

}  // namespace

void tensor_to_proto(const Tensor& tensor, pb::TensorProto& proto) { write_tensor(tensor, 1, proto); }

std::string serialize_tensor_proto(const Tensor& tensor) {
  pb::TensorProto proto;
  write_tensor(tensor, 0, proto);
  return proto.SerializeAsString();
}

Tensor parse_tensor_proto(std::string_view bytes, size_t max_bytes) {
  const google::protobuf::LogSilencer silent;  // the Error says it
  pb::TensorProto proto;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw make_error(Code::data_loss, "[TensorProto] {} bytes that are no such message", bytes.size());
  }
  return tensor_from_proto(proto, max_bytes);
}

}  // namespace runnel
