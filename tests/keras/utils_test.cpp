#include "runnel/keras/utils.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runnel/base/sha256.h"
#include "runnel/io/gzip.h"
#include "runnel/io/zip.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/http_server.h"
#include "tests/support/tar_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensors.h"

namespace runnel::keras::utils {
namespace {

using test::expect_close;
using test::expect_error;
using test::TempDir;
using test::values_of;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

TEST(ToCategorical, RowsWithAOne) {
  expect_close(to_categorical(Tensor{0, 2, 1}), {1, 0, 0, 0, 0, 1, 0, 1, 0}, {3, 3}, 0);
  expect_close(to_categorical(Tensor{{1}, {0}}, 3), {0, 1, 0, 1, 0, 0}, {2, 3}, 0);  // a last dimension of 1 goes
  expect_close(to_categorical(Tensor{{1, 0}, {0, 1}}), {0, 1, 1, 0, 1, 0, 0, 1}, {2, 2, 2}, 0);
  EXPECT_EQ(to_categorical(Tensor::of<uint8_t>({1, 0})).dtype(), float32);
  EXPECT_EQ(to_categorical(Tensor{1., 0.}, 2, float64).dtype(), float64);
  expect_error(
      [] {
        to_categorical(Tensor{0, 3}, 3);
      },
      Code::invalid_argument, "element 1 is class 3, but there are only 3");
  expect_error([] { to_categorical(Tensor{-1}); }, Code::invalid_argument, "element 0 is class -1");
  expect_error([] { to_categorical(Tensor{"a"}); }, Code::invalid_argument, "class numbers are string");
}

TEST(PadSequences, FillsAndCutsOnEitherSide) {
  const std::vector<std::vector<int>> s = {{1}, {2, 3}, {4, 5, 6}, {}};
  const Tensor plain = pad_sequences(s);
  EXPECT_EQ(plain.dtype(), int32);
  expect_close(plain, {0, 0, 1, 0, 2, 3, 4, 5, 6, 0, 0, 0}, {4, 3}, 0);
  expect_close(pad_sequences(s, {.padding = "post", .value = -1}), {1, -1, -1, 2, 3, -1, 4, 5, 6, -1, -1, -1}, {4, 3},
               0);
  expect_close(pad_sequences(s, {.maxlen = 2}), {0, 1, 2, 3, 5, 6, 0, 0}, {4, 2}, 0);
  expect_close(pad_sequences(s, {.maxlen = 2, .truncating = "post"}), {0, 1, 2, 3, 4, 5, 0, 0}, {4, 2}, 0);
  EXPECT_EQ(pad_sequences(s, {.maxlen = 0}).shape(), (Shape{4, 0}));
}

TEST(PadSequences, OtherTypesAndDimensions) {
  const Tensor floats =
      pad_sequences(std::vector<std::vector<double>>{{1.5}, {2, 3}}, {.dtype = float32, .value = 0.5});
  EXPECT_EQ(floats.dtype(), float32);
  expect_close(floats, {0.5, 1.5, 2, 3}, {2, 2}, 0);
  const Tensor words = pad_sequences(std::vector<std::vector<std::string>>{{"a", "b"}, {"c"}},
                                     {.dtype = DType::string, .padding = "post", .value = "PAD"});
  EXPECT_THAT(words.to_vector<std::string>(), ElementsAre("a", "b", "c", "PAD"));
  const Tensor pairs = pad_sequences(std::vector<Tensor>{Tensor{{1, 2}}, Tensor{{3, 4}, {5, 6}}});
  expect_close(pairs, {0, 0, 1, 2, 3, 4, 5, 6}, {2, 2, 2}, 0);
}

TEST(PadSequences, Errors) {
  const std::vector<std::vector<int>> s = {{1}};
  expect_error([&] { pad_sequences(s, {.padding = "both"}); }, Code::invalid_argument, "padding is 'both'");
  expect_error([&] { pad_sequences(s, {.truncating = "x"}); }, Code::invalid_argument, "truncating is 'x'");
  expect_error([&] { pad_sequences(s, {.value = "x"}); }, Code::invalid_argument, "value is string");
  expect_error(
      [] {
        pad_sequences({Tensor{{1, 2}}, Tensor{{1}}});
      },
      Code::invalid_argument, "sequence 1 has shape [1,1], but the steps of those before have shape [2]");
  expect_error([] { pad_sequences({Tensor(1)}); }, Code::invalid_argument, "sequence 0 is a scalar");
}

TEST(Npz, TensorsComeBack) {
  TempDir dir;
  const std::map<std::string, Tensor> arrays = {{"x", Tensor{{1.5, 2.}, {3., 4.}}},
                                                {"flags", Tensor::of<bool>({true, false})},
                                                {"half", cast(Tensor{1, 2}, float16)},
                                                {"number", Tensor(7)}};
  for (bool compress : {false, true}) {
    save_npz(dir.file("a.npz"), arrays, compress);
    const std::map<std::string, Tensor> again = load_npz(dir.file("a.npz"));
    ASSERT_EQ(again.size(), arrays.size());
    for (const auto& [name, tensor] : arrays) test::expect_same_bits(again.at(name), tensor);
  }
  expect_error([&] { save_npz(dir.file("b.npz"), {{"t", Tensor{"text"}}}); }, Code::invalid_argument, "'t' is string");
  expect_error([&] { load_npz(dir.file("none.npz")); }, Code::not_found, "none.npz");
}

TEST(SetRandomSeed, FixesDraws) {
  set_random_seed(3);
  const auto first = random::uniform({4}).to_vector<float>();
  set_random_seed(3);
  EXPECT_EQ(random::uniform({4}).to_vector<float>(), first);
  EXPECT_NE(random::uniform({4}).to_vector<float>(), first);
}

// --- image_dataset_from_directory ---

// cats/0.png ... of red 10 + i, dogs/0.png ... of red 110 + i; width x height pixels.
struct Pictures {
  TempDir dir;
  explicit Pictures(int each = 5, int64_t height = 4, int64_t width = 6) {
    for (int i = 0; i < each; ++i) {
      write("cats/" + std::to_string(i) + ".png", 10 + i, height, width);
      write("dogs/" + std::to_string(i) + ".PNG", 110 + i, height, width);
    }
    Env::posix().write_file(dir.file("cats/notes.txt"), as_bytes("not an image"));
    Env::posix().create_dirs(dir.file(".hidden"));
  }
  void write(const std::string& name, int red, int64_t height, int64_t width) const {
    std::vector<uint8_t> pixels;
    for (int64_t i = 0; i < height * width; ++i) {
      for (int v : {red, 200, static_cast<int>(i % width)}) pixels.push_back(static_cast<uint8_t>(v));
    }
    Env::posix().create_dirs(parent_dir(dir.file(name)));
    const Tensor png = image::encode_png(Tensor::of<uint8_t>(pixels, Shape{height, width, 3}));
    Env::posix().write_file(dir.file(name), as_bytes(png.item<std::string>()));
  }
};

// The red of the first pixel of each image, which tells them apart.
std::vector<double> reds(const data::AnyDataset& dataset) {
  std::vector<double> values;
  for (const auto& [x, y] : dataset.as<Tensor, Tensor>()) {
    for (double v : values_of(x(all, 0, 0, 0))) values.push_back(v);
  }
  return values;
}

TEST(ImageDataset, SortedWithIntegerLabels) {
  const Pictures p(2);
  const ImageDataset dataset =
      image_dataset_from_directory(p.dir.path(), {.batch_size = 3, .image_size = {4, 6}, .shuffle = false});
  EXPECT_THAT(dataset.class_names, ElementsAre("cats", "dogs"));
  EXPECT_THAT(dataset.file_paths, ElementsAre(EndsWith("cats/0.png"), EndsWith("cats/1.png"), EndsWith("dogs/0.PNG"),
                                              EndsWith("dogs/1.PNG")));
  const data::ElementSpec spec = dataset.element_spec();
  EXPECT_EQ(spec[0].leaf().str(), "float32[?,4,6,3]");
  EXPECT_EQ(spec[1].leaf().str(), "int32[?]");
  EXPECT_THAT(reds(dataset), ElementsAre(10, 11, 110, 111));
  std::vector<int32_t> labels;
  for (const auto& [x, y] : dataset.as<Tensor, Tensor>()) {
    for (int32_t v : y.host<int32_t>()) labels.push_back(v);
    EXPECT_EQ(values_of(x(0, 0, 3))[2], 3);  // nothing was resized
  }
  EXPECT_THAT(labels, ElementsAre(0, 0, 1, 1));
}

TEST(ImageDataset, LabelModesAndClassNames) {
  const Pictures p(1);
  const auto labels = [&](ImageDatasetOptions options) {
    options.shuffle = false;
    options.image_size = {2, 2};
    for (const auto& [x, y] : image_dataset_from_directory(p.dir.path(), options).as<Tensor, Tensor>()) return y;
    return Tensor();
  };
  expect_close(labels({.label_mode = "binary"}), {0, 1}, {2, 1}, 0);
  expect_close(labels({.label_mode = "categorical"}), {1, 0, 0, 1}, {2, 2}, 0);
  EXPECT_EQ(labels({.label_mode = "categorical"}).dtype(), float32);
  const ImageDataset turned = image_dataset_from_directory(
      p.dir.path(), {.class_names = {"dogs", "cats"}, .image_size = {4, 6}, .shuffle = false});
  EXPECT_THAT(turned.class_names, ElementsAre("dogs", "cats"));
  EXPECT_THAT(reds(turned), ElementsAre(110, 10));

  const ImageDataset images =
      image_dataset_from_directory(p.dir.path(), {.labels = "none", .image_size = {4, 6}, .shuffle = false});
  EXPECT_THAT(images.class_names, IsEmpty());
  for (const Tensor& x : images.as<Tensor>()) EXPECT_EQ(x.shape(), (Shape{2, 4, 6, 3}));
}

TEST(ImageDataset, ColoursAndSingleImages) {
  const Pictures p(1);
  for (auto [mode, channels] : {std::pair{"grayscale", 1}, {"rgb", 3}, {"rgba", 4}}) {
    const ImageDataset dataset = image_dataset_from_directory(
        p.dir.path(), {.color_mode = mode, .batch_size = std::nullopt, .image_size = {8, 5}});
    for (const auto& [x, y] : dataset.as<Tensor, Tensor>()) {
      EXPECT_EQ(x.shape(), (Shape{8, 5, channels}));
      EXPECT_EQ(y.shape(), Shape{});
    }
  }
}

TEST(ImageDataset, CropsToTheShapeOfTheTarget) {
  const Pictures p(1, 4, 8);
  const auto first = [&](bool crop) {
    const ImageDataset dataset = image_dataset_from_directory(
        p.dir.path(),
        {.image_size = {4, 4}, .shuffle = false, .interpolation = "nearest", .crop_to_aspect_ratio = crop});
    for (const auto& [x, y] : dataset.as<Tensor, Tensor>()) return values_of(x(0, 0, all, 2));
    return std::vector<double>();
  };
  EXPECT_THAT(first(true), ElementsAre(2, 3, 4, 5));   // the middle, as it is
  EXPECT_THAT(first(false), ElementsAre(1, 3, 5, 7));  // all of it, distorted
}

TEST(ImageDataset, SubsetsShareNoFileAndASeedMeansWhatItMeansInKeras) {
  const Pictures p(5);
  const auto part = [&](const char* subset) {
    return image_dataset_from_directory(p.dir.path(),
                                        {.image_size = {4, 6}, .seed = 42, .validation_split = 0.2, .subset = subset});
  };
  const ImageDataset training = part("training"), validation = part("validation");
  EXPECT_EQ(training.file_paths.size(), 8U);
  // numpy.random.RandomState(42).shuffle of 0 ... 9 gives 8 1 5 0 7 2 9 4 3 6.
  EXPECT_THAT(validation.file_paths, ElementsAre(EndsWith("cats/3.png"), EndsWith("dogs/1.PNG")));
  EXPECT_THAT(training.file_paths[0], EndsWith("dogs/3.PNG"));
  std::vector<double> all_reds = reds(training);
  for (double v : reds(validation)) all_reds.push_back(v);
  EXPECT_THAT(all_reds, UnorderedElementsAreArray({10, 11, 12, 13, 14, 110, 111, 112, 113, 114}));
}

TEST(ImageDataset, ShufflesEachPassAnew) {
  const Pictures p(20);
  const ImageDataset dataset = image_dataset_from_directory(p.dir.path(), {.image_size = {4, 6}, .seed = 1});
  const std::vector<double> first = reds(dataset), second = reds(dataset);
  EXPECT_NE(first, second);
  EXPECT_THAT(second, UnorderedElementsAreArray(first));
}

TEST(ImageDataset, Errors) {
  const Pictures p(1);
  auto bad = [&](const ImageDatasetOptions& options, Code code, const std::string& text) {
    SCOPED_TRACE(text);
    expect_error([&] { image_dataset_from_directory(p.dir.path(), options); }, code, text);
  };
  bad({.labels = "guessed"}, Code::invalid_argument, "labels is 'guessed', it must be one of: inferred, none");
  bad({.label_mode = "float"}, Code::invalid_argument, "label_mode is 'float'");
  bad({.color_mode = "cmyk"}, Code::invalid_argument, "color_mode is 'cmyk'");
  bad({.interpolation = "cubic"}, Code::invalid_argument, "interpolation is 'cubic'");
  bad({.image_size = {0, 5}}, Code::invalid_argument, "image_size is 0 x 5");
  bad({.class_names = {"cats", "birds"}}, Code::invalid_argument,
      "class_names has 'birds', but the folders of " + p.dir.path() + " are: cats, dogs");
  bad({.seed = 1, .validation_split = 0.2}, Code::invalid_argument, "must be given together");
  bad({.validation_split = 0.2, .subset = "training"}, Code::invalid_argument, "need a seed");
  bad({.seed = 1, .validation_split = 2, .subset = "training"}, Code::invalid_argument, "validation_split is 2");
  bad({.seed = 1, .validation_split = 0.1, .subset = "validation"}, Code::not_found,
      "no images (bmp, gif, jpeg, jpg, png) in " + p.dir.path() + " for the validation subset");
  Env::posix().create_dirs(p.dir.file("birds"));
  bad({.label_mode = "binary"}, Code::invalid_argument, "needs two classes, but the folders are: birds, cats, dogs");
  Env::posix().write_file(p.dir.file("birds/broken.png"), as_bytes("no image"));
  const auto broken =
      image_dataset_from_directory(p.dir.path(), {.class_names = {"birds"}, .image_size = {4, 4}, .shuffle = false});
  EXPECT_THROW(reds(broken), Error);
}

// --- get_file ---

TEST(GetFile, DownloadsOnceAndChecksTheHash) {
  const std::string text = "the file's text";
  test::HttpServer server({{"f.txt", {.body = text}}});
  TempDir dir;
  GetFileOptions options{.file_hash = sha256_hex(as_bytes(text)), .cache_dir = dir.path()};
  const std::string path = get_file("f.txt", server.url("f.txt"), options);
  EXPECT_EQ(path, dir.file("datasets/f.txt"));
  EXPECT_EQ(test::read_text(path), text);
  get_file("f.txt", server.url("f.txt"), options);
  EXPECT_EQ(server.requests().size(), 1U);

  Env::posix().write_file(path, as_bytes("damaged"));
  options.file_hash = "b6e5b9fea4c5a1a5bf2a2c1f0e6e1a33";  // an md5 that does not fit
  expect_error([&] { get_file("f.txt", server.url("f.txt"), options); }, Code::data_loss, "md5 is");
  EXPECT_FALSE(Env::posix().exists(path));
  options.file_hash = "md5 of text";
  expect_error([&] { get_file("f.txt", server.url("f.txt"), options); }, Code::invalid_argument, "11 digits");
  options.file_hash = "";
  expect_error([&] { get_file("g.txt", server.url("g.txt"), options); }, Code::not_found, "g.txt");
}

TEST(GetFile, Md5) {
  test::HttpServer server({{"f", {.body = "abc"}}});
  TempDir dir;
  const GetFileOptions options{.file_hash = "900150983cd24fb0d6963f7d28e17f72", .cache_dir = dir.path()};  // RFC 1321
  EXPECT_EQ(test::read_text(get_file("f", server.url("f"), options)), "abc");
}

TEST(GetFile, UnpacksArchives) {
  const std::string zipped = test::text_of(io::zip({{"d/a.txt", as_bytes("alpha")}}, true));
  const std::string tar = test::tar_member("t/b.txt", "beta") + test::tar_end();
  const std::string gz = test::text_of(io::gzip(as_bytes(tar)));
  const std::string outside = test::tar_member("../evil", "x") + test::tar_end();
  test::HttpServer server({{"a.zip", {.body = zipped}},
                           {"b.tar.gz", {.body = gz}},
                           {"c.tar", {.body = outside}},
                           {"d.rar", {.body = "R"}}});
  TempDir dir;
  const GetFileOptions options{.cache_subdir = "x", .extract = true, .cache_dir = dir.path()};
  EXPECT_EQ(get_file("a.zip", server.url("a.zip"), options), dir.file("x/a.zip"));
  EXPECT_EQ(test::read_text(dir.file("x/d/a.txt")), "alpha");
  get_file("b.tar.gz", server.url("b.tar.gz"), options);
  EXPECT_EQ(test::read_text(dir.file("x/t/b.txt")), "beta");
  expect_error([&] { get_file("c.tar", server.url("c.tar"), options); }, Code::data_loss,
               "'../evil' would lie outside");
  expect_error([&] { get_file("d.rar", server.url("d.rar"), options); }, Code::unimplemented, "d.rar: only .zip");
}

}  // namespace
}  // namespace runnel::keras::utils
