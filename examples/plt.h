#pragma once

// The little of matplotlib's pyplot that the handbook uses, without a window: show() saves the figure as figure_1.png,
// figure_2.png, ... in the current folder and prints the titles of its pictures.
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runnel/runnel.h"

namespace plt {

using runnel::Tensor;

// One picture of a figure.
class Axes {
 public:
  void set_title(const std::string& title) { title_ = title; }
  // [height, width] of any numbers, from the smallest (black) to the largest (white), or [height, width, 3] of colours.
  void imshow(const Tensor& image) {
    Tensor x = image;
    if (x.rank() == 2) {
      x = runnel::cast(x, runnel::float32);
      x = (x - runnel::reduce_min(x)) / runnel::maximum(runnel::reduce_max(x) - runnel::reduce_min(x), 1e-9) * 255.0;
      x = runnel::image::grayscale_to_rgb(runnel::expand_dims(x, -1));
    }
    const int64_t zoom = x.dim(0) < 100 ? 8 : 1;
    x = runnel::image::resize(x, {x.dim(0) * zoom, x.dim(1) * zoom}, {.method = "nearest"});
    picture_ = runnel::cast(x, runnel::uint8);
  }
  const std::string& title() const { return title_; }
  const Tensor& picture() const { return picture_; }

 private:
  std::string title_;
  Tensor picture_;
};

struct Figure {};

namespace detail {
inline std::vector<Axes> axes(1);  // of the figure that is being made
inline int shown = 0;
}  // namespace detail

inline void title(const std::string& title) { detail::axes[0].set_title(title); }
inline void imshow(const Tensor& image) { detail::axes[0].imshow(image); }

// A figure of pictures side by side, and its pictures.
inline std::pair<Figure, std::span<Axes>> subplots(int rows, int columns) {
  detail::axes.assign(static_cast<size_t>(rows * columns), Axes());
  return {Figure(), detail::axes};
}

inline void show() {
  const std::string file = "figure_" + std::to_string(++detail::shown) + ".png";
  std::vector<Tensor> pictures;
  std::cout << file << ":";
  for (const Axes& each : detail::axes) {
    std::cout << " " << each.title();
    pictures.push_back(each.picture());
  }
  std::cout << "\n";
  runnel::io::write_file(file, runnel::image::encode_png(runnel::concat(pictures, 1)));
  detail::axes.assign(1, Axes());
}

}  // namespace plt
