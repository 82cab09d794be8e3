// The handbook's TFRecord example: photographs of cats and dogs go into one TFRecord file, come back out as a dataset,
// and the first of them are saved with their labels as one PNG. usage: cats_vs_dogs_tfrecord DIR [TFRECORD [PNG]] DIR
// has the folders cats and dogs with JPEG files.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/runnel.h"

using namespace runnel;

constexpr int64_t side = 150;  // of an image in the sheet
constexpr int64_t columns = 4, rows = 3, caption = 20;

// Each file as one Example: the bytes of the JPEG, and 0 for a cat, 1 for a dog.
void write_records(const std::string& dir, const std::string& path) {
  io::TFRecordWriter writer(path, {.atomic = true});
  for (int64_t label : {0, 1}) {
    const Tensor files = io::matching_files(join_path(dir, label == 0 ? "cats/*.jpg" : "dogs/*.jpg"));
    for (const std::string& file : files.to_vector<std::string>()) {
      const auto image = io::read_file(file).item<std::string>();
      const io::Example example{{{{"image", io::BytesList{{image}}}, {"label", io::Int64List{{label}}}}}};
      writer.write(example.serialize());
    }
  }
  if (writer.records() == 0) throw Error(Code::not_found, dir + " has no cats/*.jpg and dogs/*.jpg");
  writer.close();
  std::printf("%llu photographs in %s\n", static_cast<unsigned long long>(writer.records()), path.c_str());
}

// A word in black on white below an image, in letters of 5 x 7 dots, each two pixels wide.
Tensor caption_of(std::string_view word) {
  constexpr std::pair<char, const char*> letters[] = {
      {'a', ".....  ..... .###. ....# .#### #...# .####"}, {'c', "..... ..... .###. #...# #.... #...# .###."},
      {'t', ".#... .#... ####. .#... .#... .#..# ..##."},  {'d', "....# ....# .##.# #..## #...# #...# .####"},
      {'o', "..... ..... .###. #...# #...# #...# .###."},  {'g', "..... .#### #...# #...# .#### ....# .###."}};
  std::vector<uint8_t> pixels(static_cast<size_t>(caption * side * 3), 255);
  int64_t left = 4;
  for (char c : word) {
    for (const auto& [letter, dots] : letters) {
      if (letter != c) continue;
      int64_t dot = 0;
      for (const char* d = dots; *d != '\0'; ++d) {
        if (*d == ' ') continue;
        for (int64_t k = 0; k < 4 && *d == '#'; ++k) {
          const int64_t y = 3 + 2 * (dot / 5) + k / 2, x = left + 2 * (dot % 5) + k % 2;
          for (int64_t rgb = 0; rgb < 3; ++rgb) pixels[static_cast<size_t>((y * side + x) * 3 + rgb)] = 0;
        }
        ++dot;
      }
    }
    left += 14;
  }
  return Tensor::of<uint8_t>(pixels, {caption, side, 3});
}

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: cats_vs_dogs_tfrecord DIR [TFRECORD [PNG]]\n");
    return 2;
  }
  const std::string path = argc > 2 ? argv[2] : "cats_vs_dogs.tfrecord";
  const std::string png = argc > 3 ? argv[3] : "cats_vs_dogs.png";
  write_records(argv[1], path);

  const io::ExampleSpec spec{{"image", io::FixedLenFeature{{}, DType::string}},
                             {"label", io::FixedLenFeature{{}, int64}}};
  const auto dataset = data::TFRecordDataset(path).shuffle(1000, 1).map(
      [spec](Tensor record) {
        const io::ParsedExample parsed = io::parse_single_example(record, spec);
        const Tensor image = image::decode_jpeg(parsed["image"], {.channels = 3});
        return std::tuple{image::resize(image, {side, side}, {.antialias = true}), parsed["label"]};
      },
      data::AUTOTUNE);

  std::vector<Tensor> sheet, row;
  for (auto [image, label] : dataset.take(columns * rows)) {
    const char* name = label.item<int64_t>() == 0 ? "cat" : "dog";
    std::printf("%s%s", name, row.size() + 1 == columns ? "\n" : " ");
    row.push_back(concat({cast(clip_by_value(image + 0.5f, 0, 255), uint8), caption_of(name)}, 0));
    if (row.size() < columns) continue;
    sheet.push_back(concat(row, 1));
    row.clear();
  }
  io::write_file(png, image::encode_png(concat(sheet, 0)));
  std::printf("wrote %s\n", png.c_str());
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "cats_vs_dogs_tfrecord: %s\n", e.what());
  return 1;
}
