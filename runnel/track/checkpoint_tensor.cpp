#include "runnel/track/checkpoint_tensor.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/file_frame.h"
#include "runnel/track/checkpoint_contents.h"

namespace runnel::train {
namespace {

Tensor read_texts(const io::CheckpointReader& reader, const io::CheckpointEntry& entry, const Shape& shape) {
  std::vector<std::string> texts = reader.read_strings(entry);
  Tensor tensor = Tensor::empty(dtype_of_entry(entry), shape);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (entry.dtype == io::kCheckpointString) {
      tensor.mutable_data<Bytes>()[i] = Bytes(std::move(texts[i]));
    } else {
      tensor.mutable_data<VariantValue>()[i].object = std::make_shared<SavedVariant>(std::move(texts[i]));
    }
  }
  return tensor;
}

// Other bytes than 0 and 1 are no bool for C++.
void check_bools(const io::CheckpointReader& reader, const io::CheckpointEntry& entry,
                 std::span<const std::byte> bytes) {
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b <= std::byte{1}; })) return;
  const std::string path = reader.shard_path(entry.shard);
  throw make_error(Code::data_loss, "[checkpoint] {}: key '{}' is of bools, and has bytes that are neither 0 nor 1",
                   path, entry.key)
      .inside(io::file_frame(path, entry.offset));
}

}  // namespace

DType dtype_of_entry(const io::CheckpointEntry& entry) {
  if (entry.dtype <= 0 || entry.dtype >= kNumDTypes) return DType::invalid;
  const auto dtype = static_cast<DType>(entry.dtype);
  switch (dtype) {
    case DType::float32:
    case DType::float64:
    case DType::int32:
    case DType::uint8:
    case DType::int16:
    case DType::int8:
    case DType::string:
    case DType::complex64:
    case DType::int64:
    case DType::bool_:
    case DType::bfloat16:
    case DType::uint16:
    case DType::complex128:
    case DType::float16:
    case DType::variant:
    case DType::uint32:
    case DType::uint64: return dtype;
    default:  // handles, and numbers of TensorFlow's that have no DType
      return DType::invalid;
  }
}

Tensor read_tensor(const io::CheckpointReader& reader, const io::CheckpointEntry& entry) {
  const DType dtype = dtype_of_entry(entry);
  if (dtype == DType::invalid) {
    throw make_error(Code::unimplemented, "[checkpoint] {}: key '{}' has the dtype {}, which no tensor here can have",
                     reader.prefix(), entry.key, io::checkpoint_dtype_name(entry.dtype));
  }
  reader.check(entry);  // that the file has so many bytes: before memory is taken for them
  const Shape shape(entry.shape);
  if (!is_plain(dtype)) return read_texts(reader, entry, shape);
  Tensor tensor = Tensor::empty(dtype, shape);
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(tensor.mutable_data<char>()), tensor.num_bytes());
  reader.read(entry, bytes);
  if (dtype == DType::bool_) check_bools(reader, entry, bytes);
  return tensor;
}

Tensor read_tensor_slice(const io::CheckpointReader& reader, const io::CheckpointEntry& entry,
                         const io::CheckpointSlice& slice) {
  const DType dtype = dtype_of_entry(entry);
  if (dtype == DType::invalid || !is_plain(dtype)) {
    throw invalid_argument("[checkpoint] {}: '{}' has the dtype {}, which cannot be cut into parts", reader.prefix(),
                           entry.key, io::checkpoint_dtype_name(entry.dtype));
  }
  reader.check(entry);  // before memory is taken
  const Tensor part = Tensor::empty(dtype, Shape(io::slice_shape(entry.shape, slice)));
  reader.read(entry, slice, {reinterpret_cast<std::byte*>(part.mutable_data<char>()), part.num_bytes()});
  return part;
}

void write_tensor(io::CheckpointWriter& writer, const std::string& key, const Tensor& tensor) {
  const Tensor t = tensor.to_host();
  const auto& dims = t.shape().dims();
  const std::vector<int64_t> shape(dims.begin(), dims.end());
  const auto count = static_cast<size_t>(t.num_elements());
  std::vector<std::string_view> texts;
  if (t.dtype() == DType::string) {
    for (size_t i = 0; i < count; ++i) texts.push_back(t.data<Bytes>()[i].view());
    writer.add_strings(key, shape, texts);
  } else if (t.dtype() == DType::variant) {
    for (size_t i = 0; i < count; ++i) {
      const auto* saved = dynamic_cast<const SavedVariant*>(t.data<VariantValue>()[i].object.get());
      if (!saved) {
        throw make_error(Code::unimplemented, "[checkpoint] '{}' holds variants that have no bytes", key);
      }
      texts.push_back(saved->bytes);
    }
    writer.add_variants(key, shape, texts);
  } else {
    writer.add(key, static_cast<int>(t.dtype()), shape,
               ByteSpan(reinterpret_cast<const std::byte*>(t.raw()), t.num_bytes()));
  }
}

}  // namespace runnel::train
