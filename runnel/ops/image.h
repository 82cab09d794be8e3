#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "runnel/op/axes.h"
#include "runnel/op/operand.h"

// Images: [height, width, channels], or a batch of them [batch, height, width, channels]. Colours are RGB. Pixels of
// integer dtypes go from 0 to the largest value of the dtype, floating ones from 0 to 1.
namespace runnel::image {

// --- decoding and encoding; `contents` are the bytes of a file, a scalar string ---

struct DecodeJpegOptions {
  int64_t channels = 0;  // 1 grey, 3 RGB, 0 as in the file
  int64_t ratio = 1;     // 2, 4 or 8: decodes each side divided by it, which is faster than resizing
  std::vector<int64_t>
      at_least;  // {height, width}: the largest ratio that leaves at least this size, in place of `ratio`
  bool fancy_upscaling = true;         // smooth colour planes
  bool try_recover_truncated = false;  // decodes what is there of a file that ends early, instead of an Error
  double acceptable_fraction = 1;      // the share of lines that must be there for that
  std::string dct_method = {};         // "INTEGER_ACCURATE", or "INTEGER_FAST", which is the default
};
// uint8 [height, width, channels]. JPEG, PNG and GIF of one frame are all understood, as in TensorFlow.
RUNNEL_API Tensor decode_jpeg(const Operand& contents, const DecodeJpegOptions& options = {});
// A window {top, left, height, width} of a JPEG.
RUNNEL_API Tensor decode_and_crop_jpeg(const Operand& contents, const ShapeArg& crop_window,
                                       const DecodeJpegOptions& options = {});
// Also 2 (grey with alpha) and 4 channels (RGB with alpha), and uint16.
RUNNEL_API Tensor decode_png(const Operand& contents, int64_t channels = 0, DType dtype = DType::uint8);
RUNNEL_API Tensor decode_bmp(const Operand& contents, int64_t channels = 0);
// uint8 [frames, height, width, 3].
RUNNEL_API Tensor decode_gif(const Operand& contents);
// uint8 [frames, height, width, 3 or 4].
RUNNEL_API Tensor decode_webp(const Operand& contents, int64_t channels = 0);

struct DecodeImageOptions {
  int64_t channels = 0;
  DType dtype = DType::uint8;     // or uint16, float32 (0 to 1)
  bool expand_animations = true;  // GIF and WebP keep a dimension of frames; else the first frame alone
};
// Any of these formats, by the first bytes.
RUNNEL_API Tensor decode_image(const Operand& contents, const DecodeImageOptions& options = {});
RUNNEL_API bool is_jpeg(const Tensor& contents, SourceSite where = SourceSite::current());
// {height, width, channels}, from the header alone.
RUNNEL_API Tensor extract_jpeg_shape(const Operand& contents, DType output_type = DType::int32);

struct EncodeJpegOptions {
  std::string format = {};  // "grayscale", "rgb", or by the number of channels
  int64_t quality = 95;
  bool progressive = false;
  bool optimize_size = false;
  bool chroma_downsampling = true;
  std::string density_unit = "in";  // or "cm"
  int64_t x_density = 300;
  int64_t y_density = 300;
  std::string xmp_metadata = {};
};
RUNNEL_API Tensor encode_jpeg(const Operand& image, const EncodeJpegOptions& options = {});
// Of one image, or of every image of a batch; uint8 or uint16, 1 to 4 channels. compression: 0 to 9, -1 is zlib's
// choice.
RUNNEL_API Tensor encode_png(const Operand& image, int64_t compression = -1);

// --- size ---

struct ResizeOptions {
  // bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian or mitchellcubic.
  std::string method = "bilinear";
  bool preserve_aspect_ratio = false;  // the largest size inside `size` of the same shape
  bool antialias = false;              // no moire where the image shrinks
  double scale = 1;                    // multiplies every value in the same pass: 1 / 255.0 makes 0 to 1 of bytes
};
// {height, width} of pixels whose centres lie at half-integers. float32, whatever the image has, except for "nearest",
// which keeps the dtype.
RUNNEL_API Tensor resize(const Operand& images, const ShapeArg& size, const ResizeOptions& options = {});
// The same shape inside height x width, black around it.
RUNNEL_API Tensor resize_with_pad(const Operand& image, int64_t target_height, int64_t target_width,
                                  const ResizeOptions& options = {});
// Cut or padded with zeros, evenly on both sides.
RUNNEL_API Tensor resize_with_crop_or_pad(const Operand& image, int64_t target_height, int64_t target_width);
RUNNEL_API Tensor central_crop(const Operand& image, double central_fraction);
RUNNEL_API Tensor crop_to_bounding_box(const Operand& image, const Operand& offset_height, const Operand& offset_width,
                                       const Operand& target_height, const Operand& target_width);
RUNNEL_API Tensor pad_to_bounding_box(const Operand& image, const Operand& offset_height, const Operand& offset_width,
                                      const Operand& target_height, const Operand& target_width);
struct CropAndResizeOptions {
  std::string method = "bilinear";  // or "nearest"
  double extrapolation_value = 0;   // of what lies outside the image
};
// Box i, {y1, x1, y2, x2} in 0 to 1, of image box_indices[i], each resized to crop_size: float32.
RUNNEL_API Tensor crop_and_resize(const Operand& image, const Operand& boxes, const Operand& box_indices,
                                  const ShapeArg& crop_size, const CropAndResizeOptions& options = {});

// Patches of `sizes` {1, rows, columns, 1} at every `strides` pixels, each laid out as channels of one pixel; `rates`
// is the distance of the pixels inside a patch. Padding is "VALID" or "SAME".
RUNNEL_API Tensor extract_patches(const Operand& images, const std::vector<int64_t>& sizes,
                                  const std::vector<int64_t>& strides, const std::vector<int64_t>& rates,
                                  const std::string& padding);

RUNNEL_API Tensor flip_left_right(const Operand& image);
RUNNEL_API Tensor flip_up_down(const Operand& image);
RUNNEL_API Tensor rot90(const Operand& image, int64_t k = 1);  // k quarter turns, counter-clockwise
RUNNEL_API Tensor transpose(const Operand& image);             // rows become columns

// --- colours and values ---

// Another dtype and its range: 0 to 1 for floats, 0 to the largest value for integers. saturate: values outside become
// the nearest end instead of wrapping around.
RUNNEL_API Tensor convert_image_dtype(const Operand& image, DType dtype, bool saturate = false);
RUNNEL_API Tensor adjust_brightness(const Operand& image, const Operand& delta);           // delta as for floats
RUNNEL_API Tensor adjust_contrast(const Operand& images, const Operand& contrast_factor);  // about each channel's mean
RUNNEL_API Tensor adjust_gamma(const Operand& image, double gamma = 1, double gain = 1);   // gain * image ** gamma
RUNNEL_API Tensor adjust_hue(const Operand& image, const Operand& delta);                  // by delta turns, -1 to 1
RUNNEL_API Tensor adjust_saturation(const Operand& image, const Operand& saturation_factor);
RUNNEL_API Tensor adjust_jpeg_quality(const Operand& image, const Operand& jpeg_quality);  // encoded and decoded again
RUNNEL_API Tensor rgb_to_grayscale(const Operand& images);
RUNNEL_API Tensor grayscale_to_rgb(const Operand& images);
RUNNEL_API Tensor rgb_to_hsv(const Operand& images);  // floating, all three from 0 to 1
RUNNEL_API Tensor hsv_to_rgb(const Operand& images);
// Each image with mean 0 and variance 1: float32.
RUNNEL_API Tensor per_image_standardization(const Operand& image);

// --- boxes found in images: [n, 4], two corners of each ---

// The boxes with the highest scores, as indices by falling score. Left out are those whose overlap (shared over covered
// area) with a better one is above iou_threshold, and those whose score is not above score_threshold.
RUNNEL_API Tensor non_max_suppression(const Operand& boxes, const Operand& scores, const Operand& max_output_size,
                                      const Operand& iou_threshold = 0.5,
                                      const Operand& score_threshold = -std::numeric_limits<double>::infinity());
struct SuppressionWithScores {
  Tensor selected_indices, selected_scores;
};
// With soft_nms_sigma above 0, scores fall the more a box overlaps better ones, and boxes stay as long as their score
// is above score_threshold.
RUNNEL_API SuppressionWithScores non_max_suppression_with_scores(
    const Operand& boxes, const Operand& scores, const Operand& max_output_size, const Operand& iou_threshold = 0.5,
    const Operand& score_threshold = -std::numeric_limits<double>::infinity(), const Operand& soft_nms_sigma = 0.0);
// The same with overlaps [n, n] in place of boxes.
RUNNEL_API Tensor non_max_suppression_overlaps(
    const Operand& overlaps, const Operand& scores, const Operand& max_output_size,
    const Operand& overlap_threshold = 0.5, const Operand& score_threshold = -std::numeric_limits<double>::infinity());
struct CombinedSuppression {
  Tensor nmsed_boxes, nmsed_scores, nmsed_classes, valid_detections;
};
// Of boxes [batch, n, 1 or classes, 4] and scores [batch, n, classes]: chosen class by class, then the best of all.
RUNNEL_API CombinedSuppression
combined_non_max_suppression(const Operand& boxes, const Operand& scores, const Operand& max_output_size_per_class,
                             const Operand& max_total_size, const Operand& iou_threshold = 0.5,
                             const Operand& score_threshold = -std::numeric_limits<double>::infinity(),
                             bool pad_per_class = false, bool clip_boxes = true);

// --- at random; `seed` gives the call a stream of its own under the global seed ---

// A slice of the given shape (all dimensions) from a random place.
RUNNEL_API Tensor random_crop(const Operand& value, const ShapeArg& size, int64_t seed = 0);
RUNNEL_API Tensor random_flip_left_right(const Operand& image, int64_t seed = 0);  // each image of a batch by itself
RUNNEL_API Tensor random_flip_up_down(const Operand& image, int64_t seed = 0);
RUNNEL_API Tensor random_brightness(const Operand& image, double max_delta, int64_t seed = 0);
RUNNEL_API Tensor random_contrast(const Operand& image, double lower, double upper, int64_t seed = 0);
RUNNEL_API Tensor random_hue(const Operand& image, double max_delta, int64_t seed = 0);
RUNNEL_API Tensor random_saturation(const Operand& image, double lower, double upper, int64_t seed = 0);
RUNNEL_API Tensor random_jpeg_quality(const Operand& image, int64_t min_quality, int64_t max_quality, int64_t seed = 0);

// The same with the state in the call: a seed of two integers fixes the result.
RUNNEL_API Tensor stateless_random_crop(const Operand& value, const ShapeArg& size, const Operand& seed);
RUNNEL_API Tensor stateless_random_flip_left_right(const Operand& image, const Operand& seed);
RUNNEL_API Tensor stateless_random_flip_up_down(const Operand& image, const Operand& seed);
RUNNEL_API Tensor stateless_random_brightness(const Operand& image, double max_delta, const Operand& seed);
RUNNEL_API Tensor stateless_random_contrast(const Operand& image, double lower, double upper, const Operand& seed);
RUNNEL_API Tensor stateless_random_hue(const Operand& image, double max_delta, const Operand& seed);
RUNNEL_API Tensor stateless_random_saturation(const Operand& image, double lower, double upper, const Operand& seed);
RUNNEL_API Tensor stateless_random_jpeg_quality(const Operand& image, int64_t min_quality, int64_t max_quality,
                                                const Operand& seed);

struct DistortedBoxOptions {
  std::vector<double> aspect_ratio_range = {0.75, 1.33};  // width over height
  std::vector<double> area_range = {0.05, 1.0};           // of the image
  int64_t max_attempts = 100;                             // then it is the whole image
  bool use_image_if_no_bounding_boxes = false;
};
struct DistortedBox {
  Tensor begin, size;  // for slice
  Tensor bboxes;       // the part, [1, 1, 4] in 0 to 1
};
// A part of an image at random that covers at least min_object_covered of one of the boxes {y1, x1, y2, x2} in 0 to 1,
// [batch, n, 4].
RUNNEL_API DistortedBox stateless_sample_distorted_bounding_box(const Operand& image_size,
                                                                const Operand& bounding_boxes, const Operand& seed,
                                                                const Operand& min_object_covered = 0.1,
                                                                const DistortedBoxOptions& options = {});

// --- measures ---

RUNNEL_API Tensor total_variation(const Operand& images);  // sum of absolute differences of neighbours, per image
// Peak signal to noise ratio per image, in decibel.
RUNNEL_API Tensor psnr(const Operand& a, const Operand& b, const Operand& max_val);

struct SsimOptions {
  int64_t filter_size = 11;
  double filter_sigma = 1.5;
  double k1 = 0.01;
  double k2 = 0.03;
};
// Structural similarity per image, 1 where they are equal.
RUNNEL_API Tensor ssim(const Operand& img1, const Operand& img2, const Operand& max_val,
                       const SsimOptions& options = {});
// The same over scales, each half as large as the one before.
RUNNEL_API Tensor ssim_multiscale(const Operand& img1, const Operand& img2, const Operand& max_val,
                                  const std::vector<double>& power_factors = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333},
                                  const SsimOptions& options = {});

}  // namespace runnel::image

// tf.io has these too.
namespace runnel::io {
using image::decode_and_crop_jpeg;
using image::decode_bmp;
using image::decode_gif;
using image::decode_image;
using image::decode_jpeg;
using image::decode_png;
using image::encode_jpeg;
using image::encode_png;
using image::extract_jpeg_shape;
using image::is_jpeg;
}  // namespace runnel::io
