#include "runnel/io/checkpoint_entry.h"

#include <runnel_pb/tensor_bundle.pb.h>

#include <limits>

#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"

namespace runnel::io {
namespace {

constexpr int kProducer = 1, kNewestReadable = 1;

template <class Message>
Message parse_message(std::string_view bytes, const char* what) {
  Message message;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw make_error(Code::data_loss, "{} is no message of that kind", what);
  }
  return message;
}

}  // namespace

CheckpointHeader parse_header(std::string_view bytes) {
  const auto message = parse_message<pb::BundleHeaderProto>(bytes, "the header");
  if (message.endianness() != pb::BundleHeaderProto::LITTLE) {
    throw Error(Code::unimplemented, "the values are big-endian, as a machine of another kind wrote them");
  }
  if (message.version().min_consumer() > kNewestReadable) {
    throw make_error(Code::unimplemented, "its format has version {}; versions up to {} are read",
                     message.version().min_consumer(), kNewestReadable);
  }
  if (message.num_shards() < 0) throw make_error(Code::data_loss, "it has {} shards", message.num_shards());
  return {.num_shards = message.num_shards()};
}

CheckpointEntry parse_entry(std::string_view key, std::string_view bytes) {
  const auto message = parse_message<pb::BundleEntryProto>(bytes, "the entry");
  CheckpointEntry entry{.key = std::string(key),
                        .dtype = message.dtype(),
                        .shape = {},
                        .shard = message.shard_id(),
                        .offset = static_cast<uint64_t>(message.offset()),
                        .size = static_cast<uint64_t>(message.size()),
                        .crc32c = message.crc32c()};
  if (message.shard_id() < 0 || message.offset() < 0 || message.size() < 0) {
    throw make_error(Code::data_loss, "shard {}, offset {}, size {}: none can be negative", message.shard_id(),
                     message.offset(), message.size());
  }
  if (message.shape().unknown_rank()) throw Error(Code::data_loss, "it has no shape");
  uint64_t elements = 1;
  bool too_many = false, empty = false;
  for (const auto& dim : message.shape().dim()) {
    if (dim.size() < 0) throw make_error(Code::data_loss, "a dimension of {}", dim.size());
    entry.shape.push_back(dim.size());
    empty = empty || dim.size() == 0;
    too_many = too_many || __builtin_mul_overflow(elements, static_cast<uint64_t>(dim.size()), &elements);
  }
  const size_t element = checkpoint_dtype_size(entry.dtype);
  uint64_t whole = 0;
  too_many = too_many || __builtin_mul_overflow(elements, element, &whole) || elements >> 60 != 0;
  if (too_many && !empty) {
    throw make_error(Code::data_loss, "the shape [{}] has more elements than any memory", comma_separated(entry.shape));
  }
  for (const auto& each : message.slices()) {
    CheckpointSlice slice;
    for (const auto& extent : each.extent()) {
      const bool has_length = extent.has_length_case() == pb::TensorSliceProto::Extent::kLength;
      if (has_length && extent.length() < 0) throw make_error(Code::data_loss, "a part of length {}", extent.length());
      slice.push_back({extent.start(), has_length ? extent.length() : -1});
    }
    try {
      slice_shape(entry.shape, slice);
    } catch (const Error& error) {
      throw Error(Code::data_loss, error.what());
    }
    entry.slices.push_back(std::move(slice));
  }
  if (element != 0 && entry.slices.empty() && entry.size != element_count(entry) * element) {
    throw make_error(Code::data_loss, "a {} of shape [{}] has {} bytes, but it is said to have {}",
                     checkpoint_dtype_name(entry.dtype), comma_separated(entry.shape), element_count(entry) * element,
                     entry.size);
  }
  return entry;
}

std::string header_bytes(const CheckpointHeader& header) {
  pb::BundleHeaderProto message;
  message.set_num_shards(header.num_shards);
  message.mutable_version()->set_producer(kProducer);
  return message.SerializeAsString();
}

std::string entry_bytes(const CheckpointEntry& entry) {
  pb::BundleEntryProto message;
  message.set_dtype(static_cast<pb::DataType>(entry.dtype));
  for (int64_t size : entry.shape) message.mutable_shape()->add_dim()->set_size(size);
  message.mutable_shape();  // a scalar's is there, and empty
  message.set_shard_id(entry.shard);
  message.set_offset(static_cast<int64_t>(entry.offset));
  message.set_size(static_cast<int64_t>(entry.size));
  message.set_crc32c(entry.crc32c);
  for (const CheckpointSlice& slice : entry.slices) {
    pb::TensorSliceProto* part = message.add_slices();
    for (const CheckpointExtent& extent : slice) {
      pb::TensorSliceProto::Extent* made = part->add_extent();
      made->set_start(extent.start);
      if (extent.length >= 0) made->set_length(extent.length);
    }
  }
  return message.SerializeAsString();
}

}  // namespace runnel::io
