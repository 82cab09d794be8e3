#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <random>

#include "runnel/base/format.h"
#include "runnel/keras/utils.h"
#include "runnel/op/composed.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/io.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/random.h"

namespace runnel::keras::utils {
namespace {

constexpr const char* kImageDataset = "[image_dataset_from_directory]";

bool is_image_file(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  for (const char* suffix : {".bmp", ".gif", ".jpeg", ".jpg", ".png"}) {
    if (lower.ends_with(suffix)) return true;
  }
  return false;
}

void collect_folders(const std::string& dir, bool follow_links, std::vector<std::string>& folders) {
  Env& env = Env::posix();
  folders.push_back(dir);
  for (const std::string& name : env.list(dir)) {
    const std::string path = join_path(dir, name);
    if (!follow_links && std::filesystem::is_symlink(path)) continue;
    if (env.stat(path).is_dir) collect_folders(path, follow_links, folders);
  }
}

// Images at any depth: folder by folder, each in the order of the names.
std::vector<std::string> images_below(const std::string& dir, bool follow_links) {
  std::vector<std::string> folders, paths;
  collect_folders(dir, follow_links, folders);
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders) {
    for (const std::string& name : Env::posix().list(folder)) {
      const std::string path = join_path(folder, name);
      if (is_image_file(name) && !Env::posix().stat(path).is_dir) paths.push_back(path);
    }
  }
  return paths;
}

std::vector<std::string> class_folders(const std::string& directory, const std::vector<std::string>& wanted) {
  std::vector<std::string> found;
  for (const std::string& name : Env::posix().list(directory)) {
    if (!name.starts_with(".") && Env::posix().stat(join_path(directory, name)).is_dir) found.push_back(name);
  }
  for (const std::string& name : wanted) {
    if (std::find(found.begin(), found.end(), name) == found.end()) {
      throw invalid_argument("{} class_names has '{}', but the folders of {} are: {}", kImageDataset, name, directory,
                             fmt::join(found, ", "));
    }
  }
  return wanted.empty() ? found : wanted;
}

// The order that numpy.random.RandomState(seed).shuffle gives, so that a seed means what it means in Keras.
template <class T>
void numpy_shuffle(std::vector<T>& values, int64_t seed) {
  std::mt19937 engine(static_cast<uint32_t>(seed));
  for (size_t i = values.size(); i-- > 1;) {
    uint32_t mask = static_cast<uint32_t>(i), j;
    for (int bits : {1, 2, 4, 8, 16}) mask |= mask >> bits;
    do j = static_cast<uint32_t>(engine()) & mask;
    while (j > i);
    std::swap(values[i], values[j]);
  }
}

struct ImageFile {
  std::string path;
  int32_t label = 0;
};

// The part of the files that validation_split and subset ask for.
void take_subset(std::vector<ImageFile>& files, const ImageDatasetOptions& o) {
  if (!o.validation_split) return;
  const auto held = static_cast<ptrdiff_t>(*o.validation_split * static_cast<double>(files.size()));
  if (o.subset == "training") {
    files.erase(files.end() - held, files.end());
  } else {
    files.erase(files.begin(), files.end() - held);
  }
  std::printf("Using %zu files for %s.\n", files.size(), o.subset.c_str());
}

void check_choice(const char* what, const std::string& got, const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), got) != allowed.end()) return;
  throw invalid_argument("{} {} is '{}', it must be one of: {}", kImageDataset, what, got, fmt::join(allowed, ", "));
}

void check_options(const ImageDatasetOptions& o) {
  check_choice("labels", o.labels, {"inferred", "none"});
  check_choice("label_mode", o.label_mode, {"int", "categorical", "binary", "none"});
  check_choice("color_mode", o.color_mode, {"rgb", "grayscale", "rgba"});
  check_choice("interpolation", o.interpolation,
               {"bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"});
  if (o.image_size.first <= 0 || o.image_size.second <= 0) {
    throw invalid_argument("{} image_size is {} x {}", kImageDataset, o.image_size.first, o.image_size.second);
  }
  if (o.batch_size && *o.batch_size <= 0) throw invalid_argument("{} batch_size is {}", kImageDataset, *o.batch_size);
  if (o.validation_split.has_value() != !o.subset.empty()) {
    throw invalid_argument("{} validation_split and subset must be given together", kImageDataset);
  }
  if (!o.validation_split) return;
  check_choice("subset", o.subset, {"training", "validation"});
  if (*o.validation_split <= 0 || *o.validation_split >= 1) {
    throw invalid_argument("{} validation_split is {}, it must lie between 0 and 1", kImageDataset,
                           *o.validation_split);
  }
  if (o.shuffle && !o.seed) {
    throw invalid_argument("{} shuffling and validation_split need a seed: without one both subsets may share files",
                           kImageDataset);
  }
}

// The largest window in the middle that has the shape of the target.
Tensor cut_to_shape(const Tensor& image, int64_t target_height, int64_t target_width) {
  const Tensor size = shape(image);
  const Tensor height = size[0], width = size[1];
  const auto scaled = [](const Tensor& side, int64_t to, int64_t of) {
    return cast(cast(side * static_cast<int32_t>(to), float32) / static_cast<float>(of), int32);
  };
  const Tensor crop_height = minimum(height, scaled(width, target_height, target_width));
  const Tensor crop_width = minimum(width, scaled(height, target_width, target_height));
  return image::crop_to_bounding_box(image, floordiv(height - crop_height, 2), floordiv(width - crop_width, 2),
                                     crop_height, crop_width);
}

data::Dataset<Tensor> label_dataset(const std::vector<ImageFile>& files, const std::string& mode, size_t classes) {
  std::vector<int32_t> labels;
  for (const ImageFile& file : files) labels.push_back(file.label);
  const Tensor numbers = Tensor::of<int32_t>(labels);
  if (mode == "int") return data::from_tensor_slices(numbers);
  if (mode == "binary") return data::from_tensor_slices(reshape(cast(numbers, float32), {-1, 1}));
  return data::from_tensor_slices(numbers).map(
      [classes](const Tensor& label) { return one_hot(label, static_cast<int64_t>(classes)); });
}

data::Dataset<Tensor> image_dataset(const std::vector<ImageFile>& files, const ImageDatasetOptions& o) {
  std::vector<Bytes> paths;
  for (const ImageFile& file : files) paths.emplace_back(file.path);
  const int64_t channels = o.color_mode == "rgb" ? 3 : o.color_mode == "rgba" ? 4 : 1;
  const auto [height, width] = o.image_size;
  const auto load = [=, crop = o.crop_to_aspect_ratio, method = o.interpolation, height = height,
                     width = width](const Tensor& path) {
    Tensor image = image::decode_image(io::read_file(path), {.channels = channels, .expand_animations = false});
    if (crop) image = cut_to_shape(image, height, width);
    return ensure_shape(image::resize(image, {height, width}, {.method = method}), {height, width, channels});
  };
  return data::from_tensor_slices(Tensor::of<Bytes>(paths)).map(load, data::AUTOTUNE);
}

data::AnyDataset shuffled_batches(const data::AnyDataset& elements, const ImageDatasetOptions& o, int64_t seed) {
  data::AnyDataset dataset = elements;
  if (o.shuffle) dataset = dataset.shuffle(o.batch_size ? *o.batch_size * 8 : 1024, seed);
  if (o.batch_size) dataset = dataset.batch(*o.batch_size);
  return dataset.prefetch(data::AUTOTUNE);
}

ImageDataset images_of_folder(const std::string& directory, const ImageDatasetOptions& options) {
  check_options(options);
  const bool labelled = options.labels == "inferred" && options.label_mode != "none";
  if (!labelled && !options.class_names.empty()) {
    throw invalid_argument("{} class_names need labels", kImageDataset);
  }
  std::vector<std::string> classes;
  if (labelled) classes = class_folders(directory, options.class_names);
  if (labelled && options.label_mode == "binary" && classes.size() != 2) {
    throw invalid_argument("{} label_mode 'binary' needs two classes, but the folders are: {}", kImageDataset,
                           fmt::join(classes, ", "));
  }
  std::vector<ImageFile> files;
  for (size_t i = 0; i < std::max<size_t>(classes.size(), labelled ? 0 : 1); ++i) {
    const std::string folder = labelled ? join_path(directory, classes[i]) : directory;
    for (std::string& path : images_below(folder, options.follow_links)) {
      files.push_back({std::move(path), static_cast<int32_t>(i)});
    }
  }
  if (labelled) {
    std::printf("Found %zu files belonging to %zu classes.\n", files.size(), classes.size());
  } else {
    std::printf("Found %zu files.\n", files.size());
  }
  const int64_t seed = options.seed ? *options.seed : random::uniform({}, 0, 1000000, int64).item<int64_t>();
  if (options.shuffle) numpy_shuffle(files, seed);
  take_subset(files, options);
  if (files.empty()) {
    throw make_error(Code::not_found, "{} no images (bmp, gif, jpeg, jpg, png) in {}{}", kImageDataset, directory,
                     options.subset.empty() ? "" : " for the " + options.subset + " subset");
  }
  std::vector<std::string> paths;
  for (const ImageFile& file : files) paths.push_back(file.path);
  const data::Dataset<Tensor> images = image_dataset(files, options);
  if (!labelled) return {shuffled_batches(images, options, seed), {}, paths};
  const data::Dataset<Tensor> labels = label_dataset(files, options.label_mode, classes.size());
  return {shuffled_batches(data::zip(images, labels), options, seed), classes, paths};
}

}  // namespace

ImageDataset image_dataset_from_directory(const std::string& directory, const ImageDatasetOptions& options,
                                          SourceSite where) {
  return composed(where, [&] { return images_of_folder(directory, options); });
}

}  // namespace runnel::keras::utils
