#include "runnel/keras/datasets.h"

#include <charconv>
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/io/cifar.h"
#include "runnel/io/datasets.h"
#include "runnel/io/idx.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel::keras::datasets {
namespace {

// The bytes become the tensor's; nothing is copied.
Tensor bytes_as_tensor(std::vector<std::byte> bytes, const Shape& shape) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return Tensor::wrap(uint8, shape, owner->data(), owner);
}

Tensor read_idx_file(const std::string& dir, const std::string& file, int rank) {
  const std::string path = join_path(dir, file);
  io::Idx idx = io::read_idx(path);
  if (idx.type != io::IdxType::uint8 || static_cast<int>(idx.dims.size()) != rank) {
    throw make_error(Code::data_loss, "[datasets] {}: expected uint8 of {} dimensions, found {} [{}]", path, rank,
                     io::idx_type_name(idx.type), comma_separated(idx.dims));
  }
  return bytes_as_tensor(std::move(idx.data), Shape(idx.dims));
}

Arrays read_idx_pair(const std::string& dir, const std::string& prefix) {
  Arrays arrays{read_idx_file(dir, prefix + "-images-idx3-ubyte", 3),
                read_idx_file(dir, prefix + "-labels-idx1-ubyte", 1)};
  if (arrays.first.dim(0) != arrays.second.dim(0)) {
    throw make_error(Code::data_loss, "[datasets] {}: {} {} images, but {} labels", dir, arrays.first.dim(0), prefix,
                     arrays.second.dim(0));
  }
  return arrays;
}

TrainAndTest load_idx_dataset(const std::string& name, const std::string& dir) {
  const std::string folder = io::get_dataset(name, {.dir = dir});
  return {read_idx_pair(folder, "train"), read_idx_pair(folder, "t10k")};
}

Arrays read_cifar_files(const std::vector<std::string>& paths) {
  io::Cifar10 read = io::read_cifar10(paths);
  return {bytes_as_tensor(std::move(read.images), Shape{read.count, 32, 32, 3}),
          bytes_as_tensor(std::move(read.labels), Shape{read.count, 1})};
}

struct RowRange {
  bool test = false;
  int64_t begin = 0, end = 0;
};

// One bound of a part: "1000", "-10%", or nothing.
int64_t split_bound(const std::string& text, int64_t rows, int64_t missing, const std::string& split) {
  if (text.empty()) return missing;
  const bool percent = text.back() == '%';
  int64_t value = 0;
  const char* end = text.data() + text.size() - (percent ? 1 : 0);
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || (percent && std::abs(value) > 100)) {
    throw invalid_argument("[datasets] split '{}': '{}' is neither a number nor a percentage", split, text);
  }
  if (percent) value = std::llround(static_cast<double>(value) * static_cast<double>(rows) / 100.0);
  if (value < 0) value += rows;
  return std::clamp<int64_t>(value, 0, rows);
}

std::vector<RowRange> parse_split(const std::string& split, int64_t train_rows, int64_t test_rows) {
  std::vector<RowRange> ranges;
  for (size_t at = 0; at <= split.size();) {
    const size_t plus = std::min(split.find('+', at), split.size());
    const std::string part = split.substr(at, plus - at);
    at = plus + 1;
    const size_t bracket = std::min(part.find('['), part.size());
    const std::string name = part.substr(0, bracket);
    if (name != "train" && name != "test") {
      throw invalid_argument("[datasets] split '{}': there is no '{}', only 'train' and 'test'", split, name);
    }
    RowRange range{.test = name == "test"};
    const int64_t rows = range.test ? test_rows : train_rows;
    range.end = rows;
    if (bracket < part.size()) {
      const size_t colon = part.find(':', bracket);
      if (part.back() != ']' || colon == std::string::npos) {
        throw invalid_argument("[datasets] split '{}': a part is written as 'train[10:20]' or 'train[:80%]'", split);
      }
      range.begin = split_bound(part.substr(bracket + 1, colon - bracket - 1), rows, 0, split);
      range.end = split_bound(part.substr(colon + 1, part.size() - colon - 2), rows, rows, split);
      range.end = std::max(range.begin, range.end);
    }
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace

namespace mnist {
TrainAndTest load_data(const std::string& dir, SourceSite where) {
  return composed(where, [&] { return load_idx_dataset("mnist", dir); });
}
}  // namespace mnist

namespace fashion_mnist {
TrainAndTest load_data(const std::string& dir, SourceSite where) {
  return composed(where, [&] { return load_idx_dataset("fashion-mnist", dir); });
}
}  // namespace fashion_mnist

namespace cifar10 {
TrainAndTest load_data(const std::string& dir, SourceSite where) {
  return composed(where, [&]() -> TrainAndTest {
    const std::string folder = io::get_dataset("cifar10", {.dir = dir});
    std::vector<std::string> train;
    for (int i = 1; i <= 5; ++i) train.push_back(join_path(folder, fmt::format("data_batch_{}.bin", i)));
    return {read_cifar_files(train), read_cifar_files({join_path(folder, "test_batch.bin")})};
  });
}
}  // namespace cifar10

data::AnyDataset load(const std::string& name, const std::string& split, const LoadOptions& options, SourceSite where) {
  return composed(where, [&]() -> data::AnyDataset {
    const std::string known = io::dataset_spec(name).name;
    const TrainAndTest all =
        known == "cifar10" ? cifar10::load_data(options.data_dir) : load_idx_dataset(known, options.data_dir);
    std::vector<Tensor> images, labels;
    for (const RowRange& range : parse_split(split, all.first.first.dim(0), all.second.first.dim(0))) {
      const auto& [x, y] = range.test ? all.second : all.first;
      images.push_back(x.rows(range.begin, range.end));
      labels.push_back(y.rows(range.begin, range.end));
    }
    Tensor x = images.size() == 1 ? images[0] : concat(images, 0);
    if (x.rank() == 3) x = x.with_shape(Shape{x.dim(0), x.dim(1), x.dim(2), 1});
    const Tensor y = cast(reshape(labels.size() == 1 ? labels[0] : concat(labels, 0), {-1}), int64);
    if (options.as_supervised) return data::from_tensor_slices(x, y, SourceSite());
    return data::from_tensor_slices(std::map<std::string, Tensor>{{"image", x}, {"label", y}}, SourceSite());
  });
}

}  // namespace runnel::keras::datasets
