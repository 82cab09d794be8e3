// Every name that tf.io and runnel::io share, called by that name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runnel/base/env.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

using ::testing::ElementsAre;

Tensor picture() { return Tensor::of<uint8_t>(std::vector<uint8_t>(8 * 8 * 3, 200), {8, 8, 3}); }

TEST(IoNames, Images) {
  const Tensor image = picture();
  const Tensor png = io::encode_png(image);
  const Tensor jpeg = io::encode_jpeg(image, {.quality = 100});
  EXPECT_TRUE(reduce_all(io::decode_png(png) == image).item<bool>());
  EXPECT_TRUE(reduce_all(io::decode_image(png) == image).item<bool>());
  EXPECT_EQ(io::decode_jpeg(jpeg).shape(), image.shape());
  EXPECT_TRUE(io::is_jpeg(jpeg));
  EXPECT_FALSE(io::is_jpeg(png));
  EXPECT_THAT(io::extract_jpeg_shape(jpeg).to_vector<int32_t>(), ElementsAre(8, 8, 3));
  EXPECT_EQ(io::decode_and_crop_jpeg(jpeg, Tensor{1, 2, 3, 4}).shape(), (Shape{3, 4, 3}));
  // One pixel, blue before green before red.
  const std::string bmp(
      "BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0\1\0\0\0\1\0\x18\0\0\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
      "\0"
      "\3\2\1\0",
      58);
  EXPECT_THAT(io::decode_bmp(Tensor(bmp)).to_vector<uint8_t>(), ElementsAre(1, 2, 3));
  const std::string gif("GIF89a\1\0\1\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\4\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2D\1\0;", 43);
  EXPECT_EQ(io::decode_gif(Tensor(gif)).shape(), (Shape{1, 1, 1, 3}));
}

TEST(IoNames, BytesAndText) {
  EXPECT_THAT(io::decode_raw(Tensor{"\1\2"}, uint8).to_vector<uint8_t>(), ElementsAre(1, 2));
  const Tensor saved = io::serialize_tensor(Tensor{1.f, 2.f});
  EXPECT_THAT(io::parse_tensor(saved, float32).to_vector<float>(), ElementsAre(1, 2));
  const std::vector<Tensor> columns = io::decode_csv(Tensor{"1,a", "2,b"}, {Tensor(0), Tensor("")});
  EXPECT_THAT(columns[0].to_vector<int32_t>(), ElementsAre(1, 2));
  EXPECT_THAT(columns[1].to_vector<std::string>(), ElementsAre("a", "b"));
}

TEST(IoNames, Files) {
  const std::string folder = Env::posix().create_temp_dir();
  const std::string path = join_path(folder, "a.txt");
  io::write_file(path, "hello");
  EXPECT_EQ(io::read_file(path).item<std::string>(), "hello");
  EXPECT_THAT(io::matching_files(join_path(folder, "*.txt")).to_vector<std::string>(), ElementsAre(path));
  Env::posix().remove_tree(folder);
}

TEST(IoNames, Examples) {
  const io::Example example{.features = {.feature = {{"x", io::Feature(io::FloatList{.value = {1, 2}})},
                                                     {"n", io::Feature(io::Int64List{.value = {7}})}}}};
  const Tensor record(example.serialize());
  const io::ExampleSpec spec{{"x", io::FixedLenFeature{{2}, float32}}, {"n", io::VarLenFeature{int64}}};
  EXPECT_THAT(io::parse_single_example(record, spec)["x"].to_vector<float>(), ElementsAre(1, 2));
  const io::ParsedExample batch = io::parse_example(expand_dims(record, 0), spec);
  EXPECT_EQ(batch["x"].shape(), (Shape{1, 2}));
  EXPECT_THAT(batch.sparse("n").values.to_vector<int64_t>(), ElementsAre(7));
  const io::ExampleSpec padded{{"x", io::FixedLenSequenceFeature{{}, float32, true}}};
  EXPECT_EQ(io::parse_single_example(record, padded)["x"].shape(), (Shape{2}));
  const io::ExampleSpec ragged{{"x", io::RaggedFeature{.dtype = float32}}};
  EXPECT_EQ(io::parse_example(expand_dims(record, 0), ragged).ragged("x").flat_values().shape(), (Shape{2}));
  const Tensor json = io::decode_json_example(Tensor(io::example_to_json(example)));
  EXPECT_EQ(io::Example::parse(json.item<std::string>()), example);
}

TEST(IoNames, SequencesOfFeatures) {
  io::SequenceExample sequence;
  sequence.context.feature = {{"id", io::Feature(io::Int64List{.value = {3}})}};
  sequence.feature_lists.feature_list = {
      {"word", {.feature = {io::Feature(io::Int64List{.value = {1}}), io::Feature(io::Int64List{.value = {2}})}}}};
  const Tensor record(sequence.serialize());
  const io::ExampleSpec context{{"id", io::FixedLenFeature{{}, int64}}};
  const io::ExampleSpec lists{{"word", io::FixedLenSequenceFeature{{}, int64}}};
  const io::ParsedSequence one = io::parse_single_sequence_example(record, context, lists);
  EXPECT_EQ(one.context["id"].leaf().item<int64_t>(), 3);
  EXPECT_THAT(one.sequences["word"].leaf().to_vector<int64_t>(), ElementsAre(1, 2));
  const io::ParsedSequence all = io::parse_sequence_example(expand_dims(record, 0), context, lists);
  EXPECT_EQ(all.sequences["word"].leaf().shape(), (Shape{1, 2}));
}

TEST(IoNames, RecordFiles) {
  const std::string path = join_path(Env::posix().create_temp_dir(), "a.tfrecord");
  io::TFRecordWriter writer(path, io::TFRecordOptions{});
  writer.write("one");
  writer.close();
  io::RecordReader reader(path);
  EXPECT_EQ(reader.next()->size(), 3u);
  Env::posix().remove_tree(parent_dir(path));
}

}  // namespace
}  // namespace runnel
