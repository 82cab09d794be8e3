// The handbook's tour of tf.data: a dataset of two columns, and MNIST mapped, batched, shuffled and prefetched. Batches
// before and after a rotation by 90 degrees are saved as one PNG. usage: dataset_tutorial [PNG [DIR]]
#include <cstdio>
#include <exception>
#include <string>

#include "runnel/io/datasets.h"
#include "runnel/io/idx.h"
#include "runnel/runnel.h"

using namespace runnel;

// The images of an idx file as [n, 28, 28, 1], the labels as [n].
Tensor read_idx(const std::string& path) {
  const io::Idx idx = io::read_idx(path);
  Tensor t = Tensor::empty(uint8, Shape(idx.dims));
  std::copy(idx.data.begin(), idx.data.end(), reinterpret_cast<std::byte*>(t.mutable_data<uint8_t>()));
  return idx.dims.size() == 3 ? expand_dims(t, -1) : t;
}

// Images side by side, in the gray values of a sheet.
Tensor row_of_images(const Tensor& images) {
  const Tensor gray = squeeze(images * 255.f);
  return reshape(transpose(gray, {1, 0, 2}), {28, -1});
}

int main(int argc, char** argv) try {
  const std::string png = argc > 1 ? argv[1] : "dataset_tutorial.png";

  const Tensor x{2013, 2014, 2015, 2016, 2017};
  const Tensor y{12000, 14000, 15000, 16500, 17500};
  for (auto [year, price] : data::from_tensor_slices(x, y)) {
    std::printf("%d %d\n", year.item<int32_t>(), price.item<int32_t>());
  }

  const std::string dir = io::get_dataset("mnist", {.dir = argc > 2 ? argv[2] : ""});
  const Tensor images = read_idx(join_path(dir, "train-images-idx3-ubyte"));
  const Tensor labels = cast(read_idx(join_path(dir, "train-labels-idx1-ubyte")), int64);

  // The map is a function: it is traced once, and since all its ops work pixel by pixel, it runs on whole batches.
  const auto scale = function([](Tensor image, Tensor label) { return std::tuple{cast(image, float32) / 255, label}; });
  const auto mnist = data::from_tensor_slices(images, labels).map(scale, data::AUTOTUNE);

  const auto first = mnist.batch(8).take(1);
  const auto turned =
      mnist.map(
               [](Tensor image, Tensor label) {
                 return std::tuple{image::rot90(image), label};
               },
               data::AUTOTUNE)
          .batch(8)
          .take(1);
  std::vector<Tensor> sheet;
  for (const auto& batches : {first, turned}) {
    for (auto [batch, numbers] : batches) {
      sheet.push_back(row_of_images(batch));
      std::printf("%s\n", numbers.str().c_str());
    }
  }
  io::write_file(png, image::encode_png(expand_dims(cast(concat(sheet, 0), uint8), -1)));
  std::printf("wrote %s\n", png.c_str());

  const auto train = mnist.shuffle(10000, 1).batch(50).prefetch(data::AUTOTUNE);
  Tensor pixels(0.f);
  int64_t batches = 0;
  for (auto [batch, numbers] : train) {
    pixels = pixels + reduce_mean(batch);
    ++batches;
  }
  std::printf("%lld batches of 50, mean pixel %.4f\n", static_cast<long long>(batches),
              static_cast<double>(pixels.item<float>()) / static_cast<double>(batches));
  std::printf("%s", train.explain().c_str());
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "dataset_tutorial: %s\n", e.what());
  return 1;
}
