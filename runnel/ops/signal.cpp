// Signals in pieces, windows, spectra of pieces, the mel scale.
#include "runnel/ops/signal.h"

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel::signal {
namespace {

constexpr double kPi = std::numbers::pi;

// The size of an axis: a number where it is known, else a tensor.
Tensor axis_size(const Tensor& x, int axis) { return shape(x)[axis]; }

int64_t power_of_two_from(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

void require_positive(const char* op, const char* what, int64_t value) {
  if (value < 1) throw invalid_argument("[{}] {} must be positive, got {}", op, what, value);
}

// a - b cos(2 pi i / n), n one less than the length where the window is symmetric, as in the numbers of TensorFlow.
Tensor cosine_window(const char* op, int64_t length, bool periodic, double a, double b, DType dtype) {
  if (length < 0) throw invalid_argument("[{}] window_length must not be negative, got {}", op, length);
  if (length == 1) return ones({1}, dtype);
  const int64_t even = length % 2 == 0 ? 1 : 0;
  const double n = static_cast<double>(length + (periodic ? even : 0) - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < length; ++i) values.push_back(a - b * std::cos(2 * kPi * static_cast<double>(i) / n));
  return cast(Tensor::of<double>(values, Shape{length}), dtype);
}

double hertz_to_mel(double hertz) { return 1127.0 * std::log1p(hertz / 700.0); }

}  // namespace

Tensor fftshift(const Operand& x, const std::vector<int64_t>& axes) {
  return composed(x.where(), [&]() -> Tensor {
    const Tensor t = x.value();
    const Tensor which = Axes(axes.empty() ? Axes() : Axes(axes)).tensor_for(t);
    return roll(t, floordiv(gather(shape(t), which), 2), which);
  });
}

Tensor ifftshift(const Operand& x, const std::vector<int64_t>& axes) {
  return composed(x.where(), [&]() -> Tensor {
    const Tensor t = x.value();
    const Tensor which = Axes(axes.empty() ? Axes() : Axes(axes)).tensor_for(t);
    return roll(t, negative(floordiv(gather(shape(t), which), 2)), which);
  });
}

Tensor hann_window(int64_t window_length, bool periodic, DType dtype, SourceSite where) {
  return composed(where, [&] { return cosine_window("HannWindow", window_length, periodic, 0.5, 0.5, dtype); });
}

Tensor hamming_window(int64_t window_length, bool periodic, DType dtype, SourceSite where) {
  return composed(where, [&] { return cosine_window("HammingWindow", window_length, periodic, 0.54, 0.46, dtype); });
}

Tensor vorbis_window(int64_t window_length, DType dtype, SourceSite where) {
  return composed(where, [&]() -> Tensor {
    if (window_length < 0) throw invalid_argument("[VorbisWindow] window_length must not be negative");
    std::vector<double> values;
    for (int64_t i = 0; i < window_length; ++i) {
      const double s = std::sin(kPi / static_cast<double>(window_length) * (static_cast<double>(i) + 0.5));
      values.push_back(std::sin(kPi / 2 * s * s));
    }
    return cast(Tensor::of<double>(values, Shape{window_length}), dtype);
  });
}

Tensor frame(const Operand& signal, int64_t frame_length, int64_t frame_step, bool pad_end, const Operand& pad_value,
             int axis) {
  return composed(signal.where(), [&]() -> Tensor {
    require_positive("Frame", "frame_length", frame_length);
    require_positive("Frame", "frame_step", frame_step);
    Tensor x = signal.value();
    const PartialShape s = x.partial_shape();
    if (!s.has_rank()) throw invalid_argument("[Frame] the rank of the signal must be known");
    const int at = normalize_axis(axis, s.rank(), "[Frame] axis");
    const Tensor size = axis_size(x, at);
    Tensor frames;
    if (pad_end) {
      frames = maximum(floordiv(size + (frame_step - 1), frame_step), 0);
      const Tensor missing = maximum((frames - 1) * frame_step + frame_length - size, 0);
      Tensor after = zeros({s.rank()}, DType::int32);
      after = tensor_scatter_nd_update(after, Tensor::of<int32_t>({at}, Shape{1, 1}), reshape(missing, {1}));
      const Tensor value = pad_value.is_literal() ? pad_value.as(x.dtype()) : *pad_value.tensor();
      x = pad(x, stack({zeros_like(after), after}, 1), "CONSTANT", value);
    } else {
      frames = maximum(floordiv(size - frame_length, frame_step) + 1, 0);
    }
    const Tensor first = expand_dims(range(frames) * frame_step, 1);
    const Tensor within = expand_dims(range(frame_length), 0);
    return gather(x, first + cast(within, first.dtype()), at);
  });
}

Tensor overlap_and_add(const Operand& signal, int64_t frame_step) {
  return composed(signal.where(), [&]() -> Tensor {
    require_positive("OverlapAndAdd", "frame_step", frame_step);
    const Tensor x = signal.value();
    const PartialShape s = x.partial_shape();
    if (s.has_rank() && s.rank() < 2) {
      throw invalid_argument("[OverlapAndAdd] rank 2 or more needed, got shape {}", s.str());
    }
    const Tensor sizes = shape(x);
    const Tensor frames = sizes[-2], length = sizes[-1];
    const Tensor total = maximum((frames - 1) * frame_step + length, 0);  // as TensorFlow counts, also of no frames
    const Tensor at = expand_dims(range(frames) * frame_step, 1) + expand_dims(range(length), 0);
    // Segments want what is added in the first dimension.
    const Tensor outer = sizes(slice(none, -2));
    const Tensor flat = transpose(reshape(x, stack({reduce_prod(outer), frames * length})));
    const Tensor sums = math::unsorted_segment_sum(flat, reshape(at, {-1}), total);
    return reshape(transpose(sums), concat({outer, reshape(total, {1})}, 0));
  });
}

WindowFn default_window() {
  return [](int64_t length, DType dtype) { return hann_window(length, true, dtype); };
}

Tensor stft(const Operand& signals, int64_t frame_length, int64_t frame_step, int64_t fft_length,
            const WindowFn& window_fn, bool pad_end) {
  return composed(signals.where(), [&]() -> Tensor {
    require_positive("Stft", "frame_length", frame_length);
    if (fft_length < 0) fft_length = power_of_two_from(frame_length);
    Tensor pieces = frame(signals, frame_length, frame_step, pad_end);
    if (window_fn) pieces = pieces * window_fn(frame_length, pieces.dtype());
    return rfft(pieces, {fft_length});
  });
}

Tensor inverse_stft(const Operand& stfts, int64_t frame_length, int64_t frame_step, int64_t fft_length,
                    const WindowFn& window_fn) {
  return composed(stfts.where(), [&]() -> Tensor {
    require_positive("InverseStft", "frame_length", frame_length);
    if (frame_length > std::numeric_limits<int32_t>::max()) {
      throw invalid_argument("[InverseStft] frame_length must be below 2^31, got {}", frame_length);
    }
    if (fft_length < 0) fft_length = power_of_two_from(frame_length);
    Tensor pieces = irfft(stfts, {fft_length});
    const Tensor have = shape(pieces);
    if (frame_length <= fft_length) {
      pieces = pieces(ellipsis, slice(0, frame_length));
    } else {
      const Tensor after =
          concat({zeros_like(have(slice(none, -1))), Tensor{static_cast<int32_t>(frame_length - fft_length)}}, 0);
      pieces = pad(pieces, stack({zeros_like(have), after}, 1));
    }
    if (window_fn) pieces = pieces * window_fn(frame_length, pieces.dtype());
    return overlap_and_add(pieces, frame_step);
  });
}

WindowFn inverse_stft_window_fn(int64_t frame_step, const WindowFn& forward_window_fn) {
  return [frame_step, forward_window_fn](int64_t length, DType dtype) {
    require_positive("InverseStftWindow", "frame_step", frame_step);
    // What the squares of the windows over a place add up to; places repeat every step.
    const Tensor window = forward_window_fn(length, dtype);
    const int64_t overlaps = (length + frame_step - 1) / frame_step;
    const Tensor squares = pad(square(window), {{0, static_cast<int32_t>(overlaps * frame_step - length)}});
    const Tensor sums = reduce_sum(reshape(squares, {overlaps, frame_step}), 0, true);
    const Tensor all = reshape(tile(sums, {overlaps, 1}), {overlaps * frame_step});
    return window / all(slice(0, length));
  };
}

Tensor dct(const Operand& input, int type, int64_t n, const std::string& norm) {
  return composed(input.where(), [&]() -> Tensor {
    const bool ortho = norm == "ortho";
    if (!norm.empty() && !ortho) throw invalid_argument("[Dct] norm must be empty or ortho, got '{}'", norm);
    Tensor x = input.value();
    const Tensor sizes = shape(x);
    const PartialShape s = x.partial_shape();
    if (n != -1 && (n < 1 || n > std::numeric_limits<int32_t>::max())) {
      throw invalid_argument("[Dct] n must be positive and below 2^31 (-1: the size of the input), got {}", n);
    }
    if (n > 0) {
      const Tensor missing = maximum(Tensor{static_cast<int32_t>(n)} - sizes(slice(-1, none)), 0);
      const Tensor after = concat({zeros_like(sizes(slice(none, -1))), missing}, 0);
      x = pad(x, stack({zeros_like(sizes), after}, 1))(ellipsis, slice(0, n));
    } else if (s.has_rank() && s.rank() > 0 && s[-1] >= 0) {
      n = s[-1];
    } else {
      throw invalid_argument("[Dct] the last size must be known, or n given; got shape {}", s.str());
    }
    require_positive("Dct", "n", n);
    const DType dtype = x.dtype();
    // exp(-i pi k / (2 n)) for every k, scaled.
    const auto turns = [&](double scale, double offset) {
      std::vector<std::complex<double>> values;
      for (int64_t k = 0; k < n; ++k) {
        values.push_back(scale *
                         std::polar(1.0, -kPi * (static_cast<double>(k) + offset) / (2.0 * static_cast<double>(n))));
      }
      const Tensor t = Tensor::of<std::complex<double>>(values, Shape{n});
      return dtype == DType::float64 ? t : cast(t, DType::complex64);
    };
    if (type == 1) {
      if (ortho) throw invalid_argument("[Dct] type 1 cannot be orthonormal");
      if (n < 2) throw invalid_argument("[Dct] type 1 needs 2 numbers or more, got {}", n);
      const Tensor mirrored = concat({x, reverse(x, {-1})(ellipsis, slice(1, n - 1))}, -1);
      return real(rfft(mirrored));
    }
    if (type == 2) {
      const Tensor spectrum = rfft(x, {2 * n})(ellipsis, slice(0, n));
      Tensor y = real(spectrum * turns(2, 0));
      if (!ortho) return y;
      const double rest = 0.5 * std::sqrt(2.0 / static_cast<double>(n));
      std::vector<double> weights(static_cast<size_t>(n), rest);
      weights[0] = 0.5 / std::sqrt(static_cast<double>(n));
      return y * cast(Tensor::of<double>(weights, Shape{n}), dtype);
    }
    if (type == 3) {
      if (ortho) {
        std::vector<double> weights(static_cast<size_t>(n), std::sqrt(0.5 * static_cast<double>(n)));
        weights[0] = std::sqrt(static_cast<double>(n));
        x = x * cast(Tensor::of<double>(weights, Shape{n}), dtype);
      } else {
        x = x * static_cast<double>(n);
      }
      const Tensor spectrum = complex(x, zeros_like(x)) * conj(turns(2, 0));
      return irfft(spectrum, {2 * n})(ellipsis, slice(0, n));
    }
    if (type == 4) {
      const Tensor y = dct(x, 2, 2 * n)(ellipsis, slice(1, none, 2));  // every second of twice as many
      return ortho ? y * (std::sqrt(0.5) / std::sqrt(static_cast<double>(n))) : y;
    }
    throw invalid_argument("[Dct] type must be 1, 2, 3 or 4, got {}", type);
  });
}

Tensor idct(const Operand& input, int type, const std::string& norm) {
  return composed(input.where(), [&]() -> Tensor {
    if (type < 1 || type > 4) throw invalid_argument("[Idct] type must be 1, 2, 3 or 4, got {}", type);
    return dct(input, type == 2 ? 3 : type == 3 ? 2 : type, -1, norm);
  });
}

Tensor linear_to_mel_weight_matrix(const MelOptions& o, SourceSite where) {
  return composed(where, [&]() -> Tensor {
    require_positive("LinearToMel", "num_mel_bins", o.num_mel_bins);
    if (o.num_spectrogram_bins < 1 || o.sample_rate <= 0 || o.lower_edge_hertz < 0 ||
        o.lower_edge_hertz >= o.upper_edge_hertz || o.upper_edge_hertz > o.sample_rate / 2) {
      throw invalid_argument("[LinearToMel] the edges must go up from 0 to half of the sample rate {}, got {} to {}",
                             o.sample_rate, o.lower_edge_hertz, o.upper_edge_hertz);
    }
    const double low = hertz_to_mel(o.lower_edge_hertz), high = hertz_to_mel(o.upper_edge_hertz);
    const auto edge = [&](int64_t i) {
      return low + (high - low) * static_cast<double>(i) / static_cast<double>(o.num_mel_bins + 1);
    };
    std::vector<double> weights(static_cast<size_t>(checked_times(o.num_spectrogram_bins, o.num_mel_bins)), 0.0);
    // The first bin is the constant part, which belongs to no band.
    for (int64_t i = 1; i < o.num_spectrogram_bins; ++i) {
      const double hertz = o.sample_rate / 2 * static_cast<double>(i) / static_cast<double>(o.num_spectrogram_bins - 1);
      const double mel = hertz_to_mel(hertz);
      for (int64_t b = 0; b < o.num_mel_bins; ++b) {
        const double up = (mel - edge(b)) / (edge(b + 1) - edge(b));
        const double down = (edge(b + 2) - mel) / (edge(b + 2) - edge(b + 1));
        weights[static_cast<size_t>(i * o.num_mel_bins + b)] = std::max(0.0, std::min(up, down));
      }
    }
    return cast(Tensor::of<double>(weights, Shape{o.num_spectrogram_bins, o.num_mel_bins}), o.dtype);
  });
}

Tensor mfccs_from_log_mel_spectrograms(const Operand& log_mel_spectrograms) {
  return composed(log_mel_spectrograms.where(), [&]() -> Tensor {
    const Tensor x = log_mel_spectrograms.value();
    const PartialShape s = x.partial_shape();
    if (!s.has_rank() || s.rank() < 1 || s[-1] < 1) {
      throw invalid_argument("[Mfccs] the number of mel bins must be known and positive, got shape {}", s.str());
    }
    return dct(x) * (1 / std::sqrt(2.0 * static_cast<double>(s[-1])));
  });
}

}  // namespace runnel::signal
