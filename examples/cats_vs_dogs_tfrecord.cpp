// The handbook's TFRecord file: photographs of cats and dogs go into it, and come out of it as a dataset. The first one
// is shown, as figure_1.png. usage: cats_vs_dogs_tfrecord --data_dir=DIR
// DIR holds train/cats and train/dogs; the file becomes DIR/train/train.tfrecords.
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "examples/options.h"
#include "examples/plt.h"
#include "runnel/runnel.h"

using namespace runnel;

int main(int argc, char** argv) try {
  const Options options(argc, argv, {{"data_dir", "cats_vs_dogs"}});
  const std::string data_dir = options.folder("data_dir");
  const std::string train_cats_dir = data_dir + "/train/cats/";
  const std::string train_dogs_dir = data_dir + "/train/dogs/";
  const std::string tfrecord_file = data_dir + "/train/train.tfrecords";

  const auto train_cat_filenames = io::matching_files(train_cats_dir + "*").to_vector<std::string>();
  const auto train_dog_filenames = io::matching_files(train_dogs_dir + "*").to_vector<std::string>();
  std::vector<std::string> train_filenames = train_cat_filenames;
  train_filenames.insert(train_filenames.end(), train_dog_filenames.begin(), train_dog_filenames.end());
  std::vector<int64_t> train_labels(train_cat_filenames.size(), 0);  // cats are 0, dogs are 1
  train_labels.insert(train_labels.end(), train_dog_filenames.size(), 1);

  {
    io::TFRecordWriter writer(tfrecord_file);
    for (size_t i = 0; i < train_filenames.size(); ++i) {
      const std::string& filename = train_filenames[i];
      const int64_t label = train_labels[i];
      const auto image = io::read_file(filename).item<std::string>();  // the bytes of the picture
      const std::map<std::string, io::Feature> feature = {
          {"image", io::Feature(io::BytesList{.value = {image}})},  // bytes
          {"label", io::Feature(io::Int64List{.value = {label}})},  // an integer
      };
      const io::Example example{.features = io::Features{.feature = feature}};
      writer.write(example.serialize());
    }
    writer.close();
  }

  const data::TFRecordDataset raw_dataset(tfrecord_file);

  const io::ExampleSpec feature_description = {
      // what to expect of each feature
      {"image", io::FixedLenFeature{{}, DType::string}},
      {"label", io::FixedLenFeature{{}, int64}},
  };

  const auto parse_example = [&](const Tensor& example_string) {
    auto feature_dict = io::parse_single_example(example_string, feature_description);
    feature_dict["image"] = io::decode_jpeg(feature_dict["image"]);
    return std::tuple{feature_dict["image"], feature_dict["label"]};
  };

  const auto dataset = raw_dataset.map(parse_example);

  for (auto [image, label] : dataset) {
    plt::title(label.item<int64_t>() == 0 ? "cat" : "dog");
    plt::imshow(image);
    plt::show();
    break;  // one picture tells enough: a window waits to be closed, a file does not
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "cats_vs_dogs_tfrecord: %s\n", e.what());
  return 1;
}
