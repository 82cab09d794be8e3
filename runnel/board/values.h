#pragma once

// What the values of events hold: numbers, images, clips, texts. Everything comes from files, so every size is checked.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/io/event_point.h"

namespace runnel::board {

// The number of a scalar: a simple value or a tensor of one number. False where it is neither.
RUNNEL_API bool read_scalar(const io::EventValue& value, float* number);

// Numbers of a tensor, row by row.
struct Numbers {
  std::vector<int64_t> shape;
  std::vector<double> values;
};
// Texts of a tensor of strings: also images and clips, in the bytes of their files.
struct Texts {
  std::vector<int64_t> shape;
  std::vector<std::string> values;
};

// Each throws an Error that says what the value is instead. A histogram of TensorFlow 1 is rows of (left, right,
// count), as those of TensorFlow 2; an image is width, height and file, a clip file and label; a graph is a text.
RUNNEL_API Numbers numbers_of(const io::EventPoint& point);
RUNNEL_API Texts texts_of(const io::EventPoint& point);
RUNNEL_API bool holds_texts(const io::EventPoint& point);

// The type of a file of images or sound by its first bytes; "application/octet-stream" for all others, so that no
// browser takes them for a page.
RUNNEL_API const char* media_type(std::string_view bytes);

}  // namespace runnel::board
