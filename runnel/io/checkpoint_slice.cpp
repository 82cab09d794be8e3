#include "runnel/io/checkpoint_slice.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <numeric>
#include <set>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"

namespace runnel::io {
namespace {

Error bad_spec(const std::string& text, const char* why) {
  return invalid_argument("[checkpoint] '{}' is no slice: {}; \"100 20 0,50:-\" is the first half of a [100,20]", text,
                          why);
}

int64_t number_of(std::string_view word, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0) {
    throw bad_spec(text, "sizes, starts and lengths are numbers from 0");
  }
  return value;
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// Keys of slices are made of values encoded so that the order of the bytes is that of the values.
void append_ordered_unsigned(std::string& out, uint64_t value) {
  const auto bytes = static_cast<size_t>((std::bit_width(value) + 7) / 8);
  out += static_cast<char>(bytes);
  for (size_t i = bytes; i-- > 0;) out += static_cast<char>(value >> (8 * i));
}

void append_ordered_text(std::string& out, std::string_view text) {
  for (char c : text) {
    out += c;
    if (c == '\0') out += '\xff';
    if (c == '\xff') out += '\0';
  }
  out += '\0';
  out += '\1';
}

// The first bits tell the sign and how many bytes there are: seven bits of value for each, and one less.
void append_ordered_signed(std::string& out, int64_t value) {
  const auto magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  const auto bytes = static_cast<size_t>(std::bit_width(magnitude) / 7 + 1);
  char buffer[10];
  for (size_t i = 0; i < 10; ++i) {
    buffer[9 - i] = static_cast<char>(i < 8 ? static_cast<uint64_t>(value) >> (8 * i) : (value < 0 ? 0xff : 0));
  }
  char* begin = buffer + 10 - bytes;
  const uint32_t marks = 0xffffu << (16 - bytes) & 0xffffu;  // `bytes` ones from the left
  begin[0] = static_cast<char>(begin[0] ^ static_cast<char>(marks >> 8));
  if (bytes > 1) begin[1] = static_cast<char>(begin[1] ^ static_cast<char>(marks));
  out.append(begin, bytes);
}

int64_t length_of(const CheckpointExtent& extent, int64_t dim) { return extent.length < 0 ? dim : extent.length; }

}  // namespace

CheckpointSliceSpec parse_slice_spec(const std::string& text, SourceSite where) {
  return at_caller(where, [&]() -> CheckpointSliceSpec {
    std::vector<std::string_view> words = parts_of(text, ' ');
    if (words.size() < 2) throw bad_spec(text, "the shape is missing");
    CheckpointSliceSpec spec;
    for (size_t i = 0; i + 1 < words.size(); ++i) spec.shape.push_back(number_of(words[i], text));
    for (std::string_view part : parts_of(words.back(), ':')) {
      if (part == "-") {
        spec.slice.emplace_back();
        continue;
      }
      const std::vector<std::string_view> pair = parts_of(part, ',');
      if (pair.size() != 2) throw bad_spec(text, "a dimension has START,LENGTH or -");
      spec.slice.push_back({number_of(pair[0], text), number_of(pair[1], text)});
    }
    if (spec.slice.size() != spec.shape.size()) throw bad_spec(text, "it has another rank than the shape");
    slice_shape(spec.shape, spec.slice);
    return spec;
  });
}

std::vector<int64_t> slice_shape(std::span<const int64_t> shape, const CheckpointSlice& slice, SourceSite where) {
  return at_caller(where, [&] {
    if (slice.size() != shape.size()) {
      throw invalid_argument("[checkpoint] a slice of rank {} of a tensor of shape [{}]", slice.size(),
                             comma_separated(shape));
    }
    std::vector<int64_t> sizes;
    for (size_t d = 0; d < slice.size(); ++d) {
      const int64_t length = length_of(slice[d], shape[d]);
      if (slice[d].start < 0 || slice[d].start > shape[d] || length > shape[d] - slice[d].start) {
        throw invalid_argument("[checkpoint] a slice that begins at {} and has {} elements of a dimension of {}",
                               slice[d].start, length, shape[d]);
      }
      sizes.push_back(length);
    }
    return sizes;
  });
}

bool is_whole(const CheckpointSlice& slice) {
  return std::all_of(slice.begin(), slice.end(), [](const CheckpointExtent& extent) { return extent.length < 0; });
}

bool slices_overlap(std::span<const int64_t> shape, const CheckpointSlice& a, const CheckpointSlice& b) {
  const std::vector<int64_t> a_shape = slice_shape(shape, a), b_shape = slice_shape(shape, b);
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t begin = std::max(a[d].start, b[d].start);
    if (begin >= std::min(a[d].start + a_shape[d], b[d].start + b_shape[d])) return false;
  }
  return true;
}

// Only slices that have places of one dimension in common are compared: of the one that most differ in.
std::optional<std::pair<size_t, size_t>> find_overlap(std::span<const int64_t> shape,
                                                      std::span<const CheckpointSlice> slices) {
  size_t dim = 0, most = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::set<int64_t> starts;
    for (const CheckpointSlice& slice : slices) starts.insert(slice.at(d).start);
    if (starts.size() > most) {
      most = starts.size();
      dim = d;
    }
  }
  std::vector<size_t> order(slices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto start_of = [&](size_t i) { return shape.empty() ? 0 : slices[i][dim].start; };
  std::ranges::stable_sort(order, {}, start_of);
  for (size_t i = 0; i < order.size(); ++i) {
    const CheckpointSlice& slice = slices[order[i]];
    const int64_t end = shape.empty() ? 1 : slice[dim].start + length_of(slice[dim], shape[dim]);
    for (size_t k = i + 1; k < order.size() && start_of(order[k]) < end; ++k) {
      if (slices_overlap(shape, slice, slices[order[k]])) return std::minmax(order[i], order[k]);
    }
  }
  return std::nullopt;
}

std::string slice_key(std::string_view key, const CheckpointSlice& slice) {
  std::string out;
  append_ordered_unsigned(out, 0);
  append_ordered_text(out, key);
  append_ordered_unsigned(out, slice.size());
  for (const CheckpointExtent& extent : slice) {
    append_ordered_signed(out, extent.start);
    append_ordered_signed(out, extent.length);
  }
  return out;
}

uint64_t copy_common_part(std::span<const int64_t> shape, size_t element_size, const CheckpointSlice& from,
                          ByteSpan from_bytes, const CheckpointSlice& to, std::span<std::byte> to_bytes) {
  const std::vector<int64_t> from_shape = slice_shape(shape, from), to_shape = slice_shape(shape, to);
  const size_t rank = shape.size();
  std::vector<int64_t> begin(rank), size(rank);
  uint64_t elements = 1;
  for (size_t d = 0; d < rank; ++d) {
    begin[d] = std::max(from[d].start, to[d].start);
    const int64_t end = std::min(from[d].start + from_shape[d], to[d].start + to_shape[d]);
    size[d] = std::max<int64_t>(end - begin[d], 0);
    elements *= static_cast<uint64_t>(size[d]);
  }
  if (elements == 0) return 0;
  const auto place = [&](const std::vector<int64_t>& at, const CheckpointSlice& box,
                         const std::vector<int64_t>& box_shape) {
    int64_t index = 0;
    for (size_t d = 0; d < rank; ++d) index = index * box_shape[d] + (at[d] - box[d].start);
    return static_cast<size_t>(index) * element_size;
  };
  // Row by row: a counter over all dimensions but the last.
  const size_t row = (rank == 0 ? 1 : static_cast<size_t>(size[rank - 1])) * element_size;
  std::vector<int64_t> at = begin;
  while (true) {
    std::memcpy(to_bytes.subspan(place(at, to, to_shape), row).data(),
                from_bytes.subspan(place(at, from, from_shape), row).data(), row);
    size_t d = rank == 0 ? 0 : rank - 1;
    while (d > 0 && ++at[d - 1] == begin[d - 1] + size[d - 1]) {
      at[d - 1] = begin[d - 1];
      --d;
    }
    if (d == 0) return elements;
  }
}

}  // namespace runnel::io
