// Images as the bytes of files.
#include "runnel/base/format.h"
#include "runnel/io/image.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct EncodeJpegAttrs {
  std::string format;
  int64_t quality = 95;
  bool progressive = false;
  bool optimize_size = false;
  bool chroma_downsampling = true;
  std::string density_unit = "in";
  int64_t x_density = 300;
  int64_t y_density = 300;
  std::string xmp_metadata;
  static constexpr auto fields() {
    using A = EncodeJpegAttrs;
    return field_list(field("format", &A::format, {.texts = "|grayscale|rgb"}), field("quality", &A::quality),
                      field("progressive", &A::progressive), field("optimize_size", &A::optimize_size),
                      field("chroma_downsampling", &A::chroma_downsampling),
                      field("density_unit", &A::density_unit, {.texts = "in|cm"}), field("x_density", &A::x_density),
                      field("y_density", &A::y_density), field("xmp_metadata", &A::xmp_metadata));
  }
};
struct EncodePngAttrs {
  int64_t compression = -1;
  static constexpr auto fields() { return field_list(field("compression", &EncodePngAttrs::compression)); }
};

void write_jpeg(KernelContext& c, const EncodeJpegAttrs& a, int64_t quality) {
  const Shape& s = c.in(0).shape();
  const io::ImageSize size{1, s[0], s[1], s[2]};
  const int64_t wanted = a.format == "grayscale" ? 1 : a.format == "rgb" ? 3 : s[2];
  if (wanted != s[2]) throw invalid_argument("format {} needs {} channels, the image is {}", a.format, wanted, s.str());
  *c.out<Bytes>() = io::encode_jpeg(c.in<uint8_t>(0), size,
                                    {.quality = static_cast<int>(quality),
                                     .progressive = a.progressive,
                                     .optimize_size = a.optimize_size,
                                     .chroma_downsampling = a.chroma_downsampling,
                                     .density_unit = a.density_unit,
                                     .x_density = static_cast<int>(a.x_density),
                                     .y_density = static_cast<int>(a.y_density),
                                     .xmp_metadata = a.xmp_metadata});
}

Tensor bytes_of_zeros(const Shape& shape) {
  return Tensor::of<uint8_t>(std::vector<uint8_t>(static_cast<size_t>(shape.num_elements()), 0), shape);
}

}  // namespace

void register_image_encode(Registry& r) {
  r.define<EncodeJpegAttrs>("EncodeJpeg")
      .in("image", DType::uint8)
      .out("contents", DType::string)
      .shape([](InferContext& c) {
        c.require_rank(0, 3);
        scalar_shape(c);
      })
      .cpu([](KernelContext& c, const EncodeJpegAttrs& a) { write_jpeg(c, a, a.quality); })
      .doc("The bytes of a JPEG file of the image: uint8 [height, width, 1 or 3].")
      .sample({.in = {bytes_of_zeros({2, 3, 3})}})
      .sample({.in = {bytes_of_zeros({2, 3, 1})}}, {.format = "grayscale", .progressive = true})
      .sample({.in = {bytes_of_zeros({2, 3, 2})}, .error = "2 channels"})
      .sample({.in = {bytes_of_zeros({2, 3, 1})}, .error = "needs 3 channels"}, {.format = "rgb"})
      .sample({.in = {bytes_of_zeros({2, 3, 3})}, .error = "quality must be 0 to 100"}, {.quality = 101});

  r.define("EncodeJpegVariableQuality")
      .in("images", DType::uint8)
      .in_host("quality", DType::int32)
      .out("contents", DType::string)
      .shape([](InferContext& c) {
        c.require_rank(0, 3);
        c.require_rank(1, 0);
        scalar_shape(c);
      })
      .cpu([](KernelContext& c) { write_jpeg(c, {}, c.int_scalar(1)); })
      .doc("The bytes of a JPEG file of the image, of a quality from 0 to 100 that is an input.")
      .sample({.in = {bytes_of_zeros({2, 3, 3}), Tensor(50)}})
      .sample({.in = {bytes_of_zeros({2, 3, 3}), Tensor(-1)}, .error = "quality must be 0 to 100"});

  r.define<EncodePngAttrs>("EncodePng")
      .type("T", Types<uint8_t, uint16_t>{}, DType::uint8)
      .in("image")
      .out("contents", DType::string)
      .shape([](InferContext& c) {
        c.require_rank_at_least(0, 3);
        const PartialShape& s = c.input(0);
        if (!s.has_rank()) return c.output(PartialShape::unknown());
        c.output(PartialShape(std::span<const int64_t>(s.begin(), s.end() - 3)));
      })
      .cpu([]<class T>(KernelContext& c, const EncodePngAttrs& a) {
        if (a.compression < -1 || a.compression > 9) {
          throw invalid_argument("compression must be -1 to 9, got {}", a.compression);
        }
        const Dims& s = c.in(0).shape().dims();
        const size_t n = s.size();
        const io::ImageSize size{1, s[n - 3], s[n - 2], s[n - 1]};
        for (int64_t i = 0; i < c.out().num_elements(); ++i) {
          c.out<Bytes>()[i] =
              io::encode_png(c.in<T>(0) + i * size.samples(), size, {.compression = static_cast<int>(a.compression)});
        }
      })
      .doc("The bytes of a PNG file of the image, [height, width, 1 to 4], or of each image of a batch.")
      // Made anew: the file of another dtype is another file.
      .sample({.make =
                   [] {
                     return std::vector{bytes_of_zeros({2, 3, 3})};
                   }})
      .sample({.make =
                   [] {
                     return std::vector{bytes_of_zeros({2, 2, 3, 1})};
                   }},
              {.compression = 9})
      .sample({.in = {bytes_of_zeros({2, 3, 5})}, .error = "5 channels"})
      .sample({.in = {bytes_of_zeros({0, 3, 3})}, .error = "without pixels"})
      .sample({.in = {bytes_of_zeros({2, 3, 3})}, .error = "compression must be"}, {.compression = 10});
}

namespace image {

Tensor encode_jpeg(const Operand& image, const EncodeJpegOptions& o) {
  static const Op<EncodeJpegAttrs> op("EncodeJpeg");
  return op({image}, {.format = o.format,
                      .quality = o.quality,
                      .progressive = o.progressive,
                      .optimize_size = o.optimize_size,
                      .chroma_downsampling = o.chroma_downsampling,
                      .density_unit = o.density_unit,
                      .x_density = o.x_density,
                      .y_density = o.y_density,
                      .xmp_metadata = o.xmp_metadata});
}

Tensor encode_png(const Operand& image, int64_t compression) {
  static const Op<EncodePngAttrs> op("EncodePng");
  return op({image}, {.compression = compression});
}

Tensor adjust_jpeg_quality(const Operand& image, const Operand& jpeg_quality) {
  return composed(image.where(), [&]() -> Tensor {
    static const Op op("EncodeJpegVariableQuality");
    const Tensor x = image.value();
    const Tensor bytes = convert_image_dtype(x, DType::uint8, true);
    return convert_image_dtype(decode_jpeg(op({bytes, cast(jpeg_quality, DType::int32)})), x.dtype());
  });
}

}  // namespace image
}  // namespace runnel
