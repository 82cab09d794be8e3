// Images from the bytes of files.
#include <cstring>

#include "runnel/base/format.h"
#include "runnel/base/parallel.h"
#include "runnel/io/image.h"
#include "runnel/io/origin.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"

namespace runnel {
namespace {

using io::ImageFormat;
using namespace std::string_view_literals;

struct DecodeJpegAttrs {
  int64_t channels = 0;
  int64_t ratio = 1;
  bool fancy_upscaling = true;
  bool try_recover_truncated = false;
  double acceptable_fraction = 1;
  std::string dct_method;
  static constexpr auto fields() {
    using A = DecodeJpegAttrs;
    return field_list(field("channels", &A::channels), field("ratio", &A::ratio),
                      field("fancy_upscaling", &A::fancy_upscaling),
                      field("try_recover_truncated", &A::try_recover_truncated),
                      field("acceptable_fraction", &A::acceptable_fraction), field("dct_method", &A::dct_method));
  }
};
struct ChannelsAttrs {
  int64_t channels = 0;
  static constexpr auto fields() { return field_list(field("channels", &ChannelsAttrs::channels)); }
};
struct DecodePngAttrs {
  int64_t channels = 0;
  DType dtype = DType::uint8;
  static constexpr auto fields() {
    return field_list(field("channels", &DecodePngAttrs::channels),
                      field("dtype", &DecodePngAttrs::dtype, {.types = Types<uint8_t, uint16_t>::mask}));
  }
};
struct DecodeImageAttrs {
  int64_t channels = 0;
  DType dtype = DType::uint8;
  bool expand_animations = true;
  static constexpr auto fields() {
    return field_list(field("channels", &DecodeImageAttrs::channels),
                      field("dtype", &DecodeImageAttrs::dtype, {.types = Types<uint8_t, uint16_t, float>::mask}),
                      field("expand_animations", &DecodeImageAttrs::expand_animations));
  }
};
struct JpegShapeAttrs {
  DType output_type = DType::int32;
  static constexpr auto fields() {
    return field_list(field("output_type", &JpegShapeAttrs::output_type, {.types = index_types.mask}));
  }
};

// Which formats an op reads and what it makes of frames.
struct Reading {
  std::string_view formats;  // letters: j, p, g, b, w
  bool frames = false;       // a dimension of frames for every format
  bool animations = false;   // one for GIF and WebP
  bool first_only = false;
  int64_t channels = 0;
  io::JpegDecodeOptions jpeg = {};
};

ByteSpan contents_of(KernelContext& c) {
  const std::string_view text = c.in<Bytes>(0)->view();
  if (text.empty()) throw invalid_argument("the contents are empty");
  return std::as_bytes(std::span(text));
}

char letter(ImageFormat format) {
  switch (format) {
    case ImageFormat::jpeg: return 'j';
    case ImageFormat::png: return 'p';
    case ImageFormat::gif: return 'g';
    case ImageFormat::bmp: return 'b';
    case ImageFormat::webp: return 'w';
    case ImageFormat::unknown: break;
  }
  return 0;
}

ImageFormat known_format(ByteSpan bytes, std::string_view readable) {
  const ImageFormat format = io::image_format(bytes);
  if (format == ImageFormat::unknown) {
    std::string start;
    for (size_t i = 0; i < std::min<size_t>(bytes.size(), 8); ++i) start += fmt::format("{:02x} ", bytes[i]);
    throw invalid_argument("the contents ({} bytes, the first: {}) are no JPEG, PNG, GIF, BMP or WebP", bytes.size(),
                           start);
  }
  if (readable.find(letter(format)) == std::string_view::npos) {
    throw invalid_argument("the contents are {}, which this op does not read; decode_image does",
                           io::image_format_name(format));
  }
  return format;
}

io::ImageSize decode_bytes(ImageFormat format, ByteSpan bytes, const Reading& r, bool wide, io::ImageSink sink) {
  const int channels = static_cast<int>(r.channels);
  switch (format) {
    case ImageFormat::jpeg: {
      io::JpegDecodeOptions options = r.jpeg;
      options.channels = channels;
      return io::decode_jpeg(bytes, options, sink);
    }
    case ImageFormat::png: return io::decode_png(bytes, {.channels = channels, .wide = wide}, sink);
    case ImageFormat::bmp: return io::decode_bmp(bytes, {.channels = channels}, sink);
    case ImageFormat::webp:
      return io::decode_webp(bytes, {.channels = channels, .first_frame_only = r.first_only}, sink);
    default: break;
  }
  if (channels != 0 && channels != 3) throw invalid_argument("GIF: channels must be 0 or 3, got {}", channels);
  return io::decode_gif(bytes, {.first_frame_only = r.first_only}, sink);
}

template <class From, class To>
void scaled(const From* x, To* y, int64_t n, To scale) {
  parallel_for(n, 65536, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = static_cast<To>(static_cast<To>(x[i]) * scale);
  });
}

void decode_contents(KernelContext& c, const Reading& r) {
  if (r.channels < 0 || r.channels > 4 || r.channels == 2) {
    throw invalid_argument("channels must be 0, 1, 3 or 4, got {}", r.channels);
  }
  const ByteSpan bytes = contents_of(c);
  const ImageFormat format = known_format(bytes, r.formats);
  const DType dtype = c.output_dtype(0);
  const bool wide = format == ImageFormat::png && dtype != DType::uint8;
  const bool moving = format == ImageFormat::gif || format == ImageFormat::webp;
  const bool frames = r.frames || (r.animations && moving);
  std::vector<uint8_t> narrow;
  std::vector<uint16_t> deep;
  const io::ImageSize size = decode_bytes(format, bytes, r, wide, [&](const io::ImageSize& s) -> void* {
    if (!frames && s.frames != 1) {
      throw invalid_argument("an animation of {} frames; decode_gif, decode_webp and decode_image read these",
                             s.frames);
    }
    const Tensor& out =
        c.allocate(0, frames ? Shape{s.frames, s.height, s.width, s.channels} : Shape{s.height, s.width, s.channels});
    if (dtype == DType::uint8 || (wide && dtype == DType::uint16)) return out.mutable_data<char>();
    if (wide) {
      deep.resize(static_cast<size_t>(s.samples()));
      return deep.data();
    }
    narrow.resize(static_cast<size_t>(s.samples()));
    return narrow.data();
  });
  if (!deep.empty()) scaled(deep.data(), c.out<float>(), size.samples(), 1.0f / 65535);
  if (narrow.empty()) return;
  if (dtype == DType::uint16) {
    scaled(narrow.data(), c.out<uint16_t>(), size.samples(), uint16_t{256});
  } else {
    scaled(narrow.data(), c.out<float>(), size.samples(), 1.0f / 255);
  }
}

void decode(KernelContext& c, const Reading& r) {
  try {
    decode_contents(c, r);
  } catch (const Error& e) {
    const std::string file = io::origin_of(c.in<Bytes>(0)->view());
    if (file.empty()) throw;
    throw make_error(e.code(), "{}: {}", file, e.what());
  }
}

io::JpegDecodeOptions jpeg_options(const DecodeJpegAttrs& a) {
  if (!a.dct_method.empty() && a.dct_method != "INTEGER_FAST" && a.dct_method != "INTEGER_ACCURATE") {
    throw invalid_argument("dct_method must be empty, INTEGER_FAST or INTEGER_ACCURATE, got '{}'", a.dct_method);
  }
  if (a.ratio != 1 && a.ratio != 2 && a.ratio != 4 && a.ratio != 8) {
    throw invalid_argument("ratio must be 1, 2, 4 or 8, got {}", a.ratio);
  }
  io::JpegDecodeOptions o;
  o.ratio = static_cast<int>(a.ratio);
  o.fancy_upscaling = a.fancy_upscaling;
  o.fast_dct = a.dct_method != "INTEGER_ACCURATE";
  o.try_recover_truncated = a.try_recover_truncated;
  o.acceptable_fraction = a.acceptable_fraction;
  return o;
}

int64_t channels_dim(int64_t channels) { return channels == 0 ? kUnknownDim : channels; }

template <class A>
void still_shape(InferContext& c, const A& a) {
  c.require_rank(0, 0);
  c.output(PartialShape{kUnknownDim, kUnknownDim, channels_dim(a.channels)});
}

// A file of one pixel each.
constexpr auto kPng =
    "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\b\2\0\0\0\x90wS\xde\0\0\0\fIDATx\x9c"
    "c\xf8\xcf\xc0\0\0\3\1\1\0\xc9\xfe\x92\xef\0\0\0\0IEND\xae"
    "B`\x82"sv;
constexpr auto kGif = "GIF89a\1\0\1\0\x80\0\0\xff\0\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"sv;
constexpr auto kBmp =
    "BM:\0\0\0\0\0\0\0"
    "6\0\0\0(\0\0\0\1\0\0\0\1\0\0\0\1\0\x18\0\0\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\2\1\0"sv;
constexpr auto kWebp = "RIFF\x1a\0\0\0WEBPVP8L\r\0\0\0/\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0"sv;

Tensor file(std::string_view bytes) { return Tensor(Bytes(bytes)); }
Tensor pixel(std::initializer_list<uint8_t> values) {
  return Tensor::of<uint8_t>(std::vector<uint8_t>(values), Shape{1, 1, static_cast<int64_t>(values.size())});
}

// Grey, so that nothing is lost: 8 x 8 of 128.
std::vector<Tensor> grey_jpeg() {
  const std::vector<uint8_t> pixels(64, 128);
  return {Tensor(Bytes(io::encode_jpeg(pixels.data(), {1, 8, 8, 1}, {})))};
}
Tensor grey_pixels(int64_t side) {
  return Tensor::of<uint8_t>(std::vector<uint8_t>(static_cast<size_t>(side * side), 128), Shape{side, side, 1});
}

}  // namespace

void register_image_decode(Registry& r) {
  r.define<DecodeJpegAttrs>("DecodeJpeg")
      .in("contents", DType::string)
      .out("image", DType::uint8)
      .shape([](InferContext& c, const DecodeJpegAttrs& a) { still_shape(c, a); })
      .cpu([](KernelContext& c, const DecodeJpegAttrs& a) {
        decode(c, {.formats = "jpg", .channels = a.channels, .jpeg = jpeg_options(a)});
      })
      .doc("The pixels of a JPEG file (or PNG, or GIF of one frame): [height, width, channels].")
      .sample({.out = {grey_pixels(8)}, .make = grey_jpeg})
      .sample({.out = {grey_pixels(4)}, .make = grey_jpeg}, {.channels = 1, .ratio = 2})
      .sample({.in = {file(kPng)}, .out = {pixel({255, 0, 0})}})
      .sample({.in = {file("")}, .error = "empty"})
      .sample({.in = {file("no image at all")}, .error = "no JPEG, PNG, GIF, BMP or WebP"})
      .sample({.in = {file("\xff\xd8\xff\xe0")}, .error = "the data ends early, at byte 4"})
      .sample({.in = {file(kBmp)}, .error = "the contents are BMP"})
      .sample({.in = {file("\xff\xd8\xff\xe0")}, .error = "dct_method"}, {.dct_method = "SLOW"})
      .sample({.in = {file(kPng)}, .error = "ratio must be 1, 2, 4 or 8"}, {.ratio = 0});

  r.define<DecodeJpegAttrs>("DecodeAndCropJpeg")
      .in("contents", DType::string)
      .in_host("crop_window", DType::int32)
      .out("image", DType::uint8)
      .shape([](InferContext& c, const DecodeJpegAttrs& a) {
        c.require_rank(0, 0);
        c.require_rank(1, 1);
        const auto window = c.constant_ints(1);
        if (window && window->size() != 4) {
          throw invalid_argument("crop_window must be {{top, left, height, width}}, got {} values", window->size());
        }
        c.output(PartialShape{window ? (*window)[2] : kUnknownDim, window ? (*window)[3] : kUnknownDim,
                              channels_dim(a.channels)});
      })
      .cpu([](KernelContext& c, const DecodeJpegAttrs& a) {
        io::JpegDecodeOptions o = jpeg_options(a);
        const Dims window = c.ints(1);
        o.crop = true;
        o.crop_y = window[0], o.crop_x = window[1], o.crop_height = window[2], o.crop_width = window[3];
        decode(c, {.formats = "j", .channels = a.channels, .jpeg = o});
      })
      .doc("A window {top, left, height, width} of the pixels of a JPEG file.")
      .sample({.out = {grey_pixels(3)},
               .make =
                   [] {
                     return std::vector{grey_jpeg()[0], Tensor{2, 5, 3, 3}};
                   }})
      .sample({.in = {file("\xff\xd8\xff\xe0"), Tensor{0, 0, 1, 1}}, .error = "the data ends early, at byte 4"})
      .sample({.in = {file(kPng), Tensor{0, 0, 1, 1}}, .error = "the contents are PNG"})
      .sample({.in = {file(kPng), Tensor{0, 0, 1}}, .error = "crop_window"});

  // Ours: how far to shrink while decoding is found in the file.
  r.define<DecodeJpegAttrs>("_DecodeJpegAtLeast")
      .in("contents", DType::string)
      .in_host("size", DType::int32)
      .out("image", DType::uint8)
      .shape([](InferContext& c, const DecodeJpegAttrs& a) {
        c.require_rank(1, 1);
        still_shape(c, a);
      })
      .cpu([](KernelContext& c, const DecodeJpegAttrs& a) {
        io::JpegDecodeOptions o = jpeg_options(a);
        const Dims size = c.ints(1);
        if (size.size() != 2 || size[0] < 1 || size[1] < 1) {
          throw invalid_argument("size must be {{height, width}}, positive, got [{}]", comma_separated(size));
        }
        o.min_height = size[0], o.min_width = size[1];
        decode(c, {.formats = "jpg", .channels = a.channels, .jpeg = o});
      })
      .doc("The pixels of a JPEG file, each side divided by the largest of 1, 2, 4 and 8 that leaves at least `size`.")
      .sample({.out = {grey_pixels(4)},
               .make =
                   [] {
                     return std::vector{grey_jpeg()[0], Tensor{3, 4}};
                   }})
      .sample({.in = {file(kPng), Tensor{0, 1}}, .error = "positive"});

  r.define<DecodePngAttrs>("DecodePng")
      .in("contents", DType::string)
      .out("image", "dtype")
      .shape([](InferContext& c, const DecodePngAttrs& a) { still_shape(c, a); })
      .cpu([](KernelContext& c, const DecodePngAttrs& a) { decode(c, {.formats = "jpg", .channels = a.channels}); })
      .doc("The pixels of a PNG file (or JPEG, or GIF of one frame): [height, width, channels].")
      .sample({.in = {file(kPng)}, .out = {pixel({255, 0, 0})}})
      .sample({.in = {file(kPng)}, .out = {pixel({76})}}, {.channels = 1})
      .sample({.in = {file(kPng)}, .out = {pixel({255, 0, 0, 255})}}, {.channels = 4})
      .sample({.in = {file(kPng)}, .out = {Tensor::of<uint16_t>({65535, 0, 0}, Shape{1, 1, 3})}},
              {.dtype = DType::uint16})
      .sample({.in = {file(kGif)}, .out = {pixel({255, 0, 0})}})
      .sample({.in = {file(kPng.substr(0, 50))}, .error = "PNG: the data ends early, at byte 50"})
      .sample({.in = {file(kPng)}, .error = "channels must be 0, 1, 3 or 4"}, {.channels = 5})
      .sample({.in = {file(kPng)}, .error = "channels must be 0, 1, 3 or 4"}, {.channels = 2})
      .sample({.in = {file(kPng)}, .error = "uint8, uint16"}, {.dtype = DType::float32});

  r.define<ChannelsAttrs>("DecodeBmp")
      .in("contents", DType::string)
      .out("image", DType::uint8)
      .shape([](InferContext& c, const ChannelsAttrs& a) { still_shape(c, a); })
      .cpu([](KernelContext& c, const ChannelsAttrs& a) { decode(c, {.formats = "b", .channels = a.channels}); })
      .doc("The pixels of a BMP file: [height, width, channels].")
      .sample({.in = {file(kBmp)}, .out = {pixel({1, 2, 3})}})
      .sample({.in = {file(kBmp)}, .out = {pixel({1, 2, 3, 255})}}, {.channels = 4})
      .sample({.in = {file(kBmp.substr(0, 40))}, .error = "BMP: the data ends early, at byte 40"})
      .sample({.in = {file(kPng)}, .error = "the contents are PNG"});

  r.define("DecodeGif")
      .in("contents", DType::string)
      .out("image", DType::uint8)
      .shape([](InferContext& c) {
        c.require_rank(0, 0);
        c.output(PartialShape{kUnknownDim, kUnknownDim, kUnknownDim, 3});
      })
      .cpu([](KernelContext& c) { decode(c, {.formats = "jpg", .frames = true, .channels = 3}); })
      .doc("The frames of a GIF file (one for JPEG and PNG): [frames, height, width, 3].")
      .sample({.in = {file(kGif)}, .out = {pixel({255, 0, 0}).with_shape(Shape{1, 1, 1, 3})}})
      .sample({.in = {file(kPng)}, .out = {pixel({255, 0, 0}).with_shape(Shape{1, 1, 1, 3})}})
      .sample({.in = {file(kGif.substr(0, 30))}, .error = "GIF: the data ends early, at byte 30"});

  r.define<ChannelsAttrs>("DecodeWebP")
      .in("contents", DType::string)
      .out("image", DType::uint8)
      .shape([](InferContext& c, const ChannelsAttrs& a) {
        c.require_rank(0, 0);
        c.output(PartialShape{kUnknownDim, kUnknownDim, kUnknownDim, channels_dim(a.channels)});
      })
      .cpu([](KernelContext& c, const ChannelsAttrs& a) {
        decode(c, {.formats = "w", .frames = true, .channels = a.channels});
      })
      .doc("The frames of a WebP file: [frames, height, width, channels].")
      .sample({.in = {file(kWebp)}})
      .sample({.in = {file(kWebp)}}, {.channels = 3})
      .sample({.in = {file(kWebp.substr(0, 24))}, .error = "WebP: the data ends early"});

  r.define<DecodeImageAttrs>("DecodeImage")
      .in("contents", DType::string)
      .out("image", "dtype")
      .shape([](InferContext& c, const DecodeImageAttrs& a) {
        still_shape(c, a);
        if (a.expand_animations) c.output(PartialShape::unknown());
      })
      .cpu([](KernelContext& c, const DecodeImageAttrs& a) {
        decode(c, {.formats = "jpgbw",
                   .animations = a.expand_animations,
                   .first_only = !a.expand_animations,
                   .channels = a.channels});
      })
      .doc("The pixels of a JPEG, PNG, GIF, BMP or WebP file; GIF and WebP with a dimension of frames.")
      .sample({.in = {file(kPng)}, .out = {pixel({255, 0, 0})}})
      .sample({.in = {file(kBmp)}, .out = {pixel({1, 2, 3})}})
      .sample({.in = {file(kGif)}, .out = {pixel({255, 0, 0}).with_shape(Shape{1, 1, 1, 3})}})
      .sample({.in = {file(kGif)}, .out = {pixel({255, 0, 0})}}, {.expand_animations = false})
      .sample({.in = {file(kPng)}, .out = {Tensor::of<float>({1, 0, 0}, Shape{1, 1, 3})}}, {.dtype = DType::float32})
      .sample({.in = {file(kBmp)}, .out = {Tensor::of<uint16_t>({256, 512, 768}, Shape{1, 1, 3})}},
              {.dtype = DType::uint16})
      .sample({.in = {file("GIF")}, .error = "no JPEG, PNG, GIF, BMP or WebP"});

  r.define<JpegShapeAttrs>("ExtractJpegShape")
      .in("contents", DType::string)
      .out("image_shape", "output_type")
      .shape([](InferContext& c) {
        c.require_rank(0, 0);
        c.output(PartialShape{3});
      })
      .cpu([](KernelContext& c, const JpegShapeAttrs& a) {
        const ByteSpan bytes = contents_of(c);
        known_format(bytes, "j");
        const io::ImageSize size = io::jpeg_size(bytes);
        const int64_t dims[] = {size.height, size.width, size.channels};
        for (int i = 0; i < 3; ++i) {
          if (a.output_type == DType::int64) {
            c.out<int64_t>()[i] = dims[i];
          } else {
            c.out<int32_t>()[i] = static_cast<int32_t>(dims[i]);
          }
        }
      })
      .doc("{height, width, channels} of a JPEG file, from its header.")
      .sample({.out = {Tensor{8, 8, 1}}, .make = grey_jpeg})
      .sample({.in = {file(kPng)}, .error = "the contents are PNG"});
}

namespace image {
namespace {

DecodeJpegAttrs attrs_of(const DecodeJpegOptions& o) {
  return {.channels = o.channels,
          .ratio = o.ratio,
          .fancy_upscaling = o.fancy_upscaling,
          .try_recover_truncated = o.try_recover_truncated,
          .acceptable_fraction = o.acceptable_fraction,
          .dct_method = o.dct_method};
}

}  // namespace

Tensor decode_jpeg(const Operand& contents, const DecodeJpegOptions& options) {
  if (!options.at_least.empty()) {
    static const Op<DecodeJpegAttrs> op("_DecodeJpegAtLeast");
    return op({contents, int_vector(Dims(options.at_least.begin(), options.at_least.end()))}, attrs_of(options));
  }
  static const Op<DecodeJpegAttrs> op("DecodeJpeg");
  return op({contents}, attrs_of(options));
}

Tensor decode_and_crop_jpeg(const Operand& contents, const ShapeArg& crop_window, const DecodeJpegOptions& options) {
  static const Op<DecodeJpegAttrs> op("DecodeAndCropJpeg");
  return op({contents, crop_window.tensor()}, attrs_of(options));
}

Tensor decode_png(const Operand& contents, int64_t channels, DType dtype) {
  static const Op<DecodePngAttrs> op("DecodePng");
  return op({contents}, {.channels = channels, .dtype = dtype});
}

Tensor decode_bmp(const Operand& contents, int64_t channels) {
  static const Op<ChannelsAttrs> op("DecodeBmp");
  return op({contents}, {.channels = channels});
}

Tensor decode_gif(const Operand& contents) {
  static const Op op("DecodeGif");
  return op({contents});
}

Tensor decode_webp(const Operand& contents, int64_t channels) {
  static const Op<ChannelsAttrs> op("DecodeWebP");
  return op({contents}, {.channels = channels});
}

Tensor decode_image(const Operand& contents, const DecodeImageOptions& o) {
  static const Op<DecodeImageAttrs> op("DecodeImage");
  return op({contents}, {.channels = o.channels, .dtype = o.dtype, .expand_animations = o.expand_animations});
}

Tensor extract_jpeg_shape(const Operand& contents, DType output_type) {
  static const Op<JpegShapeAttrs> op("ExtractJpegShape");
  return op({contents}, {.output_type = output_type});
}

bool is_jpeg(const Tensor& contents, SourceSite where) {
  const std::string bytes = contents.item<std::string>(where);
  return io::image_format(as_bytes(bytes)) == ImageFormat::jpeg;
}

}  // namespace image
}  // namespace runnel
