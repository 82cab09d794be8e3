// Parts of images at random that cover enough of given boxes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/random_context.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/random_kernels.h"

namespace runnel {
namespace {

struct StatelessDistortAttrs {
  std::vector<double> aspect_ratio_range = {0.75, 1.33};
  std::vector<double> area_range = {0.05, 1.0};
  int64_t max_attempts = 100;
  bool use_image_if_no_bounding_boxes = false;
  static constexpr auto fields() {
    using A = StatelessDistortAttrs;
    return field_list(field("aspect_ratio_range", &A::aspect_ratio_range), field("area_range", &A::area_range),
                      field("max_attempts", &A::max_attempts),
                      field("use_image_if_no_bounding_boxes", &A::use_image_if_no_bounding_boxes));
  }
};

struct PixelBox {
  int left = 0, top = 0, right = 0, bottom = 0;

  float area() const {
    return static_cast<float>(std::max(right - left, 0)) * static_cast<float>(std::max(bottom - top, 0));
  }
  PixelBox shared(const PixelBox& o) const {
    return {std::max(left, o.left), std::max(top, o.top), std::min(right, o.right), std::min(bottom, o.bottom)};
  }
};

struct Limits {
  float least_aspect, most_aspect, least_area, most_area;
};

Limits limits_of(const StatelessDistortAttrs& a) {
  const auto& aspect = a.aspect_ratio_range;
  const auto& area = a.area_range;
  if (aspect.size() != 2 || !(aspect[0] > 0) || !(aspect[0] <= aspect[1])) {
    throw invalid_argument("aspect_ratio_range must be two positive numbers that go up");
  }
  if (area.size() != 2 || !(area[0] > 0) || !(area[0] <= area[1]) || !(area[1] <= 1)) {
    throw invalid_argument("area_range must be two numbers that go up from above 0 to 1");
  }
  if (a.max_attempts < 1) throw invalid_argument("max_attempts must be positive, got {}", a.max_attempts);
  return {static_cast<float>(aspect[0]), static_cast<float>(aspect[1]), static_cast<float>(area[0]),
          static_cast<float>(area[1])};
}

int rounded(float x) { return static_cast<int>(std::lrint(x)); }

// A part of the aspect ratio (width over height), if there is one of an allowed area.
std::optional<PixelBox> random_part(int width, int height, const Limits& o, float aspect, PhiloxWords& random) {
  if (width <= 0 || height <= 0) return std::nullopt;
  const float least = o.least_area * static_cast<float>(width) * static_cast<float>(height);
  const float most = o.most_area * static_cast<float>(width) * static_cast<float>(height);
  int rows = rounded(std::sqrt(least / aspect));
  int most_rows = rounded(std::sqrt(most / aspect));
  if (rounded(static_cast<float>(most_rows) * aspect) > width) {
    constexpr float kEps = 1e-7f;
    most_rows =
        static_cast<int>((static_cast<double>(width) + 0.5 - static_cast<double>(kEps)) / static_cast<double>(aspect));
    if (rounded(static_cast<float>(most_rows) * aspect) > width) --most_rows;
  }
  most_rows = std::min(most_rows, height);
  rows = std::min(rows, most_rows);
  if (rows < most_rows) rows += static_cast<int>(random() % static_cast<uint32_t>(most_rows - rows + 1));
  int columns = rounded(static_cast<float>(rows) * aspect);
  // A row more or less where rounding left the allowed areas.
  // Areas are counted in 32 bits, as TensorFlow does: beyond them there is no part to be found.
  const auto area = [&] {
    return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(columns) * static_cast<uint32_t>(rows)));
  };
  if (area() < least) {
    ++rows;
    columns = rounded(static_cast<float>(rows) * aspect);
  }
  if (area() > most) {
    --rows;
    columns = rounded(static_cast<float>(rows) * aspect);
  }
  if (area() < least || area() > most || columns > width || rows > height || columns <= 0 || rows <= 0) {
    return std::nullopt;
  }
  const int top = rows < height ? static_cast<int>(random() % static_cast<uint32_t>(height - rows)) : 0;
  const int left = columns < width ? static_cast<int>(random() % static_cast<uint32_t>(width - columns)) : 0;
  return PixelBox{left, top, left + columns, top + rows};
}

bool covers_enough(const PixelBox& part, const std::vector<PixelBox>& boxes, float share) {
  if (part.area() < 1) return false;
  return std::any_of(boxes.begin(), boxes.end(), [&](const PixelBox& box) {
    return box.area() >= 1 && part.shared(box).area() / box.area() >= share;
  });
}

template <class T>
void distort(KernelContext& c, const StatelessDistortAttrs& a, const Philox& gen) {
  const Limits limits = limits_of(a);
  if (c.in(0).num_elements() != 3) {
    throw invalid_argument("image_size must be {{height, width, channels}}, got shape {}", c.in(0).shape().str());
  }
  for (int d = 0; d < 2; ++d) {
    if (static_cast<int64_t>(c.in<T>(0)[d]) < std::numeric_limits<int32_t>::max()) continue;
    throw invalid_argument("image_size must be less than 2^31 - 1, got {}", static_cast<int64_t>(c.in<T>(0)[d]));
  }
  const auto height = static_cast<int>(c.in<T>(0)[0]), width = static_cast<int>(c.in<T>(0)[1]);
  if (height <= 0 || width <= 0) throw invalid_argument("image_size must be positive, got [{}, {}]", height, width);
  const float share = *c.in<float>(2);
  if (!(share >= 0)) throw invalid_argument("min_object_covered must not be negative, got {}", share);
  const Tensor& given = c.in(1);
  if (given.shape()[2] != 4)
    throw invalid_argument("bounding_boxes must be [batch, n, 4], got {}", given.shape().str());
  std::vector<PixelBox> boxes;
  for (int64_t i = 0; i < given.num_elements() / 4; ++i) {
    const float* b = given.data<float>() + 4 * i;
    for (int k = 0; k < 4; ++k) {
      if (!(b[k] >= 0 && b[k] <= 1)) throw invalid_argument("bounding boxes lie within 0 to 1, got {}", b[k]);
    }
    if (b[0] > b[2] || b[1] > b[3]) {
      throw invalid_argument("bounding box {} must not go down: [{}, {}, {}, {}]", i, b[0], b[1], b[2], b[3]);
    }
    const auto w = static_cast<float>(width), h = static_cast<float>(height);
    boxes.push_back({static_cast<int>(b[1] * w), static_cast<int>(b[0] * h), static_cast<int>(b[3] * w),
                     static_cast<int>(b[2] * h)});
  }
  const PixelBox whole{0, 0, width, height};
  if (boxes.empty()) {
    if (!a.use_image_if_no_bounding_boxes) {
      throw invalid_argument("there are no bounding boxes: use_image_if_no_bounding_boxes takes the image for one");
    }
    boxes.push_back(whole);
  }
  PhiloxWords random(gen);
  PixelBox found = whole;
  for (int64_t i = 0; i < a.max_attempts; ++i) {
    const float aspect = uniform_float(random()) * (limits.most_aspect - limits.least_aspect) + limits.least_aspect;
    const auto part = random_part(width, height, limits, aspect, random);
    if (part && covers_enough(*part, boxes, share)) {
      found = *part;
      break;
    }
  }
  const int rows = found.bottom - found.top, columns = found.right - found.left;
  T *begin = c.out<T>(0), *size = c.out<T>(1);
  begin[0] = static_cast<T>(found.top), begin[1] = static_cast<T>(found.left), begin[2] = T(0);
  size[0] = static_cast<T>(rows), size[1] = static_cast<T>(columns), size[2] = static_cast<T>(-1);
  float* box = c.out<float>(2);
  box[0] = static_cast<float>(found.top) / static_cast<float>(height);
  box[1] = static_cast<float>(found.left) / static_cast<float>(width);
  box[2] = static_cast<float>(found.top + rows) / static_cast<float>(height);
  box[3] = static_cast<float>(found.left + columns) / static_cast<float>(width);
}

void distorted_shape(InferContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 3);
  c.require_rank(2, 0);
  c.output(0, PartialShape{3});
  c.output(1, PartialShape{3});
  c.output(2, PartialShape{1, 1, 4});
}

inline constexpr Types<uint8_t, int8_t, int16_t, int32_t, int64_t> image_size_types;

}  // namespace

void register_image_random_boxes(Registry& r) {
  const Tensor size{100, 200, 3}, box{{{0.1f, 0.2f, 0.9f, 0.8f}}}, share(0.5f);
  r.define<StatelessDistortAttrs>("StatelessSampleDistortedBoundingBox")
      .type("T", image_size_types)
      .in("image_size", "T")
      .in("bounding_boxes", DType::float32)
      .in("min_object_covered", DType::float32)
      .type("Tseed", index_types)
      .in_host("seed", "Tseed")
      .out("begin", "T")
      .out("size", "T")
      .out("bboxes", DType::float32)
      .shape(distorted_shape)
      .cpu([]<class T>(KernelContext& c, const StatelessDistortAttrs& a) {
        distort<T>(c, a, generator_from_seed(c.in(3)));
      })
      .not_differentiable()
      .doc("A part of an image at random that covers enough of one of the boxes, fixed by the seed.")
      .sample({.in = {size, box, Tensor(1.f), Tensor{1, 2}},
               .out = {Tensor{0, 0, 0}, Tensor{100, 200, -1}, Tensor{{{0.f, 0.f, 1.f, 1.f}}}}},
              {.aspect_ratio_range = {2, 2}, .area_range = {1, 1}})
      .sample({.in = {size, box, share, Tensor{1, 2}}})
      .sample(
          {.in = {size, Tensor::empty(DType::float32, {1, 0, 4}), share, Tensor{1, 2}}, .error = "no bounding boxes"})
      .sample({.in = {size, box, share, Tensor{1, 2}}, .error = "area_range"}, {.area_range = {0.5, 2}})
      .sample({.in = {Tensor{(int64_t{1} << 32) + 100, int64_t{100}, int64_t{3}}, box, share, Tensor{1, 2}},
               .error = "image_size must be less than"});
}

namespace image {

DistortedBox stateless_sample_distorted_bounding_box(const Operand& image_size, const Operand& bounding_boxes,
                                                     const Operand& seed, const Operand& min_object_covered,
                                                     const DistortedBoxOptions& o) {
  static const Op<StatelessDistortAttrs> op("StatelessSampleDistortedBoundingBox");
  const auto parts = op.many({image_size, bounding_boxes, min_object_covered, seed},
                             {o.aspect_ratio_range, o.area_range, o.max_attempts, o.use_image_if_no_bounding_boxes});
  return {parts[0], parts[1], parts[2]};
}

}  // namespace image
}  // namespace runnel
