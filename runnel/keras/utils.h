#pragma once

// keras.utils: arrays, files and folders on their way into a model.
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runnel/data/dataset.h"
#include "runnel/keras/progbar.h"

namespace runnel::keras::utils {

// The seed of everything random: initial weights, shuffles, dropout. Sets what random::set_seed sets.
RUNNEL_API void set_random_seed(int64_t seed);

// Class numbers as rows with a one at that place: [n] or [n,1] become [n, num_classes]. num_classes: nothing: the
// largest + 1.
RUNNEL_API Tensor to_categorical(const Tensor& y, std::optional<int64_t> num_classes = {}, DType dtype = DType::float32,
                                 SourceSite where = SourceSite::current());

struct PadSequencesOptions {
  std::optional<int64_t> maxlen = {};  // nothing: the longest
  DType dtype = DType::int32;
  std::string padding = "pre";     // or "post": where shorter ones are filled up
  std::string truncating = "pre";  // or "post": where longer ones are cut
  Tensor value = Tensor(0);        // what fills
};
// Sequences of one or more dimensions that differ in the first, as one tensor [number, maxlen, ...].
RUNNEL_API Tensor pad_sequences(const std::vector<Tensor>& sequences, const PadSequencesOptions& options = {},
                                SourceSite where = SourceSite::current());
template <class T>
  requires(dtype_of<T> != DType::invalid || std::same_as<T, std::string>)
Tensor pad_sequences(const std::vector<std::vector<T>>& sequences, const PadSequencesOptions& options = {},
                     SourceSite where = SourceSite::current()) {
  std::vector<Tensor> tensors;
  for (const std::vector<T>& each : sequences) {
    if constexpr (std::same_as<T, std::string>) {
      tensors.push_back(Tensor::of<Bytes>(std::vector<Bytes>(each.begin(), each.end())));
    } else {
      tensors.push_back(Tensor::of<T>(each));
    }
  }
  return pad_sequences(tensors, options, where);
}

// The arrays of NumPy's .npz files by name, and back.
RUNNEL_API std::map<std::string, Tensor> load_npz(const std::string& path, SourceSite where = SourceSite::current());
RUNNEL_API void save_npz(const std::string& path, const std::map<std::string, Tensor>& arrays, bool compress = false,
                         SourceSite where = SourceSite::current());

struct ImageDatasetOptions {
  std::string labels = "inferred";            // from the folders' names; "none": images alone
  std::string label_mode = "int";             // int32; "categorical": one-hot rows; "binary": 0 or 1, [n,1]; "none"
  std::vector<std::string> class_names = {};  // the folders in the order of their numbers; empty: sorted
  std::string color_mode = "rgb";             // or "grayscale", "rgba"
  std::optional<int64_t> batch_size = 32;     // nothing: single images
  std::pair<int64_t, int64_t> image_size = {256, 256};  // height, width
  bool shuffle = true;                                  // else in the order of the paths
  std::optional<int64_t> seed = {};
  std::optional<double> validation_split = {};  // the share of the files that is kept for validation
  std::string subset = {};                      // "training" or "validation", with validation_split
  std::string interpolation = "bilinear";       // any method of image::resize
  bool follow_links = false;                    // into folders that are symbolic links
  bool crop_to_aspect_ratio = false;            // cut to the shape of image_size first, instead of distorting
};

class ImageDataset : public data::AnyDataset {
 public:
  ImageDataset(const data::AnyDataset& dataset, std::vector<std::string> names, std::vector<std::string> paths)
      : AnyDataset(dataset), class_names(std::move(names)), file_paths(std::move(paths)) {}
  std::vector<std::string> class_names;  // by number; empty without labels
  std::vector<std::string> file_paths;   // in the order before the shuffle of each pass
};

// The images (bmp, gif, jpeg, png) of a folder, decoded in parallel: float32 [batch, height, width, channels] of 0 to
// 255. With labels elements are {images, labels}: `.as<Tensor, Tensor>()`. One seed gives the order of files, and so
// the parts of a validation_split, that Keras has.
RUNNEL_API ImageDataset image_dataset_from_directory(const std::string& directory,
                                                     const ImageDatasetOptions& options = {},
                                                     SourceSite where = SourceSite::current());

struct GetFileOptions {
  std::string file_hash = {};  // sha256 or md5, by its length; empty: not checked
  std::string cache_subdir = "datasets";
  bool extract = false;        // also unpacks a .zip, .tar or .tar.gz into the file's folder
  std::string cache_dir = {};  // empty: where `runnel data` keeps its files
};
// Downloads a file (http, https) unless it is there with the right hash, and returns its path.
RUNNEL_API std::string get_file(const std::string& fname, const std::string& origin, const GetFileOptions& options = {},
                                SourceSite where = SourceSite::current());

}  // namespace runnel::keras::utils
