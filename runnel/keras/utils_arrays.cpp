#include <cstring>

#include "runnel/base/format.h"
#include "runnel/io/npz.h"
#include "runnel/keras/utils.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/random.h"

namespace runnel::keras::utils {
namespace {

// Copies `count` rows of one element of a batch, whatever the dtype.
void copy_rows(const Tensor& from, int64_t from_row, const Tensor& to, int64_t to_row, int64_t count, int64_t row) {
  const auto n = static_cast<size_t>(count * row);
  if (to.dtype() == DType::string) {
    std::copy_n(from.data<Bytes>() + from_row * row, n, to.mutable_data<Bytes>() + to_row * row);
  } else if (n > 0) {
    const size_t width = dtype_size(to.dtype()), skip = static_cast<size_t>(from_row * row) * width;
    std::memcpy(to.mutable_data<char>() + static_cast<size_t>(to_row * row) * width, from.data<char>() + skip,
                n * width);
  }
}

bool is_pre(const std::string& side, const char* what) {
  if (side != "pre" && side != "post") {
    throw invalid_argument("[pad_sequences] {} is '{}', it must be 'pre' or 'post'", what, side);
  }
  return side == "pre";
}

void fill_with(const Tensor& value, const Tensor& out) {
  const int64_t n = out.num_elements();
  if (out.dtype() == DType::string) {
    std::fill_n(out.mutable_data<Bytes>(), n, value.item<Bytes>());
    return;
  }
  const size_t width = dtype_size(out.dtype());
  char* to = out.mutable_data<char>();
  for (int64_t i = 0; i < n; ++i, to += width) std::memcpy(to, value.raw(), width);
}

// A value of this dtype: what only a graph will know is an error.
Tensor with_dtype(const Tensor& t, DType dtype, const char* what) {
  if (t.dtype() != dtype && (t.dtype() == DType::string || dtype == DType::string)) {
    throw invalid_argument("[pad_sequences] {} is {}, which is not made {}; .dtype and .value must fit it", what,
                           dtype_name(t.dtype()), dtype_name(dtype));
  }
  const Tensor made = t.dtype() == dtype ? t : cast(t, dtype);
  if (made.known_value() == nullptr) throw invalid_argument("[pad_sequences] {} has no value while tracing", what);
  return *made.known_value();
}

// Shape of one step of the sequences: that of the first that has any.
Dims step_shape(const std::vector<Tensor>& sequences) {
  for (const Tensor& each : sequences) {
    if (each.dim(0) > 0) return Dims(std::span<const int64_t>(each.shape().begin() + 1, each.shape().end()));
  }
  return {};
}

}  // namespace

void set_random_seed(int64_t seed) { random::set_seed(seed); }

Tensor to_categorical(const Tensor& y, std::optional<int64_t> num_classes, DType dtype, SourceSite where) {
  return composed(where, [&] {
    if (!is_integer(y.dtype()) && !is_float(y.dtype()) && y.dtype() != bool_) {
      throw invalid_argument("[to_categorical] class numbers are {}, they must be numbers", dtype_name(y.dtype()));
    }
    const Tensor numbers = cast(y, int64);
    const HostView<int64_t> classes = numbers.host<int64_t>();
    int64_t largest = -1;
    for (size_t i = 0; i < classes.size(); ++i) {
      largest = std::max(largest, classes[i]);
      if (classes[i] < 0 || (num_classes && classes[i] >= *num_classes)) {
        throw invalid_argument("[to_categorical] element {} is class {}, but {}", i, classes[i],
                               num_classes ? fmt::format("there are only {}", *num_classes) : "the smallest is 0");
      }
    }
    Dims dims = y.shape().dims();
    if (dims.size() > 1 && dims.back() == 1) dims.pop_back();
    return one_hot(numbers.with_shape(Shape(dims)), num_classes.value_or(largest + 1), -1, dtype);
  });
}

Tensor pad_sequences(const std::vector<Tensor>& sequences, const PadSequencesOptions& options, SourceSite where) {
  return composed(where, [&] {
    const bool pad_before = is_pre(options.padding, "padding"), cut_before = is_pre(options.truncating, "truncating");
    int64_t longest = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      if (sequences[i].rank() == 0)
        throw invalid_argument("[pad_sequences] sequence {} is a scalar, not a sequence", i);
      longest = std::max(longest, sequences[i].dim(0));
    }
    const int64_t length = options.maxlen.value_or(longest);
    if (length < 0) throw invalid_argument("[pad_sequences] maxlen is {}", length);
    const Dims step = step_shape(sequences);
    Dims dims{static_cast<int64_t>(sequences.size()), length};
    int64_t row = 1;
    for (int64_t d : step) {
      dims.push_back(d);
      row *= d;
    }
    const Tensor value = with_dtype(options.value, options.dtype, "value");
    if (value.num_elements() != 1) throw invalid_argument("[pad_sequences] value has shape {}", value.shape().str());
    const Tensor padded = Tensor::empty(options.dtype, Shape(dims));
    fill_with(value, padded);
    for (size_t i = 0; i < sequences.size(); ++i) {
      const int64_t have = sequences[i].dim(0), kept = std::min(have, length);
      if (kept == 0) continue;
      const Shape& shape = sequences[i].shape();
      if (!std::equal(shape.begin() + 1, shape.end(), step.begin(), step.end())) {
        throw invalid_argument("[pad_sequences] sequence {} has shape {}, but the steps of those before have shape {}",
                               i, shape.str(), Shape(step).str());
      }
      const Tensor from = with_dtype(sequences[i], options.dtype, "a sequence");
      const auto begin = static_cast<int64_t>(i) * length;
      copy_rows(from, cut_before ? have - kept : 0, padded, begin + (pad_before ? length - kept : 0), kept, row);
    }
    return padded;
  });
}

std::map<std::string, Tensor> load_npz(const std::string& path, SourceSite where) {
  return composed(where, [&] {
    std::map<std::string, Tensor> arrays;
    for (io::NamedArray& each : io::read_npz(path)) {
      const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(each.array.data));
      arrays[each.name] =
          Tensor::wrap(dtype_from_name(each.array.dtype), Shape(each.array.shape), owner->data(), owner);
    }
    return arrays;
  });
}

void save_npz(const std::string& path, const std::map<std::string, Tensor>& arrays, bool compress, SourceSite where) {
  composed(where, [&] {
    std::vector<io::NamedView> views;
    for (const auto& [name, tensor] : arrays) {
      if (!is_plain(tensor.dtype()) || tensor.dtype() == bfloat16) {
        throw invalid_argument("[save_npz] '{}' is {}, which NumPy does not have", name, dtype_name(tensor.dtype()));
      }
      const Shape& shape = tensor.shape();
      views.push_back({name,
                       {dtype_name(tensor.dtype()),
                        {shape.begin(), shape.end()},
                        ByteSpan(static_cast<const std::byte*>(tensor.raw()), tensor.num_bytes())}});
    }
    Env::posix().write_file(path, io::npz(views, compress));
  });
}

}  // namespace runnel::keras::utils
