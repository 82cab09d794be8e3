#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using C = std::complex<double>;

// Numbers given by TensorFlow 2.15.
void expect_signal(const Tensor& actual, const std::vector<float>& expected, const Shape& shape) {
  EXPECT_EQ(actual.shape(), shape);
  EXPECT_THAT(actual.to_vector<float>(), Pointwise(FloatNear(2e-6f), expected));
}

const Tensor& ten() {
  static const Tensor x{1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f, 9.f, 10.f};
  return x;
}

TEST(Signal, FramesAndTheWayBack) {
  expect_signal(signal::frame(ten(), 4, 3), {1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10}, {3, 4});
  expect_signal(signal::frame(ten(), 4, 3, true), {1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 0, 0, 0}, {4, 4});
  expect_signal(signal::frame(reshape(ten(), {2, 5}), 2, 3, true, 9, 1), {1, 2, 4, 5, 6, 7, 9, 10}, {2, 2, 2});
  expect_signal(signal::overlap_and_add(reshape(ten(), {2, 5}), 2), {1, 2, 9, 11, 13, 9, 10}, {7});
  EXPECT_THROW(signal::frame(ten(), 0, 3), Error);
}

TEST(Signal, Windows) {
  expect_signal(signal::hann_window(4), {0, 0.5, 1, 0.5}, {4});
  expect_signal(signal::hann_window(5), {0, 0.5, 1, 0.5, 0}, {5});
  expect_signal(signal::hann_window(4, false), {0, 0.75, 0.75, 0}, {4});
  expect_signal(signal::hann_window(1), {1}, {1});
  expect_signal(signal::hamming_window(4), {0.08f, 0.54f, 1, 0.54f}, {4});
  expect_signal(signal::vorbis_window(4), {0.2280143f, 0.9736578f, 0.9736578f, 0.2280143f}, {4});
  expect_signal(signal::inverse_stft_window_fn(2)(5, DType::float32), {0, 1, 1, 1, 0}, {5});
}

TEST(Signal, SpectraOfPiecesAndTheSignalOfThem) {
  const Tensor spectra = signal::stft(ten(), 4, 2);
  expect_signal(real(spectra), {6, -3, 0, 10, -5, 0, 14, -7, 0, 18, -9, 0}, {4, 3});
  expect_signal(imag(spectra), {0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0}, {4, 3});
  expect_signal(signal::inverse_stft(spectra, 4, 2, -1, signal::inverse_stft_window_fn(2)),
                {0, 1, 3, 4, 5, 6, 7, 8, 9, 5}, {10});
  EXPECT_EQ(signal::stft(ten(), 3, 2, 8, signal::no_window).shape(), (Shape{4, 5}));
}

TEST(Signal, CosineTransforms) {
  const Tensor x{1.f, 2.f, 3.f, 4.f};
  expect_signal(signal::dct(x), {20, -6.3086443f, 0, -0.4483415f}, {4});
  expect_signal(signal::dct(x, 2, -1, "ortho"), {5, -2.2304425f, 0, -0.1585125f}, {4});
  expect_signal(signal::dct(x, 2, 6), {20, 4.2426407f, -10.392305f, 0, 4, -4.2426407f}, {6});
  expect_signal(signal::dct(x, 3) / 4, {2.9999065f, -2.2757358f, 0.6544155f, -0.3785861f}, {4});
  expect_signal(signal::dct(x, 1), {15, -4, 0, -1}, {4});
  expect_signal(signal::idct(signal::dct(x, 2, -1, "ortho"), 2, "ortho"), {1, 2, 3, 4}, {4});
  EXPECT_THROW(signal::dct(x, 2, 0), Error);
  EXPECT_THROW(signal::dct(x, 2, (int64_t{1} << 32) + 4), Error);
  expect_signal(signal::mfccs_from_log_mel_spectrograms(x), {7.0710678f, -2.2304425f, 0, -0.1585125f}, {4});
}

// Numbers given by TensorFlow 2.15.
TEST(Signal, CosinesOfTheFourthType) {
  const Tensor x{1.f, 2.f, 3.f, 4.f};
  expect_signal(signal::dct(x, 4) / 10, {1.0181593f, -.9446695f, .50102978f, -.4689565f}, {4});
  expect_signal(signal::dct(x, 4, -1, "ortho"), {3.5997367f, -3.3399112f, 1.7714077f, -1.6580117f}, {4});
  expect_signal(signal::idct(signal::dct(x, 4, -1, "ortho"), 4, "ortho"), {1, 2, 3, 4}, {4});
}

TEST(Signal, NothingToAddUp) {
  EXPECT_EQ(signal::overlap_and_add(zeros({2, 0, 4}), 2).shape(), (Shape{2, 2}));
  EXPECT_EQ(signal::overlap_and_add(zeros({0, 3, 4}), 2).shape(), (Shape{0, 8}));
}

TEST(Signal, LengthsThatDoNotFitAreErrors) {
  const Tensor x{1.f, 2.f, 3.f, 4.f};
  EXPECT_THROW(signal::rfft(x, {(int64_t{1} << 32) + 4}), Error);
  EXPECT_THROW(signal::irfft(complex(x, x), {(int64_t{1} << 32) + 4}), Error);
  const Tensor empty = call_op("IRFFT2D", {complex(ones({3, 3}), ones({3, 3})), Tensor{0, 0}}, {})[0];
  EXPECT_EQ(empty.shape(), (Shape{0, 0}));
}

TEST(Audio, WhatStandsBeforeTheFormatIsPassedOver) {
  const Tensor sound{{0.5f}, {-0.25f}};
  const std::string file = audio::encode_wav(sound, 8000).item<std::string>();
  const auto with = [&](const std::string& name) {
    return Tensor(file.substr(0, 12) + name + std::string("\4\0\0\0abcd", 8) + file.substr(12));
  };
  EXPECT_EQ(audio::decode_wav(with("JUNK")).audio.to_vector<float>(), sound.to_vector<float>());
  EXPECT_EQ(audio::decode_wav(with("bext")).audio.to_vector<float>(), sound.to_vector<float>());
  EXPECT_THROW(audio::decode_wav(with("zzzz")), Error);
}

TEST(Signal, MelScale) {
  const Tensor m = signal::linear_to_mel_weight_matrix({.num_mel_bins = 3,
                                                        .num_spectrogram_bins = 9,
                                                        .sample_rate = 8000,
                                                        .lower_edge_hertz = 100,
                                                        .upper_edge_hertz = 3000});
  EXPECT_EQ(m.shape(), (Shape{9, 3}));
  const std::vector<float> weights = m.to_vector<float>();
  const std::vector<float> expected{0,         0,         0, 0.940982f, 0.059018f, 0, 0.031255f, 0.968745f, 0, 0,
                                    0.357842f, 0.642158f, 0, 0,         0.822948f, 0, 0,         0.379195f, 0, 0,
                                    0,         0,         0, 0,         0,         0, 0};
  EXPECT_THAT(weights, Pointwise(FloatNear(1e-5f), expected));
  EXPECT_THROW(signal::linear_to_mel_weight_matrix({.upper_edge_hertz = 5000}), Error);
}

TEST(Signal, LengthsArePaddedAndShifted) {
  const Tensor spectrum = signal::rfft(Tensor{1.f, 2.f, 3.f}, {4});
  expect_signal(real(spectrum), {6, -2, 2}, {3});
  expect_signal(imag(spectrum), {0, -2, 0}, {3});
  expect_signal(signal::irfft(complex(Tensor{1.f, 2.f, 3.f}, Tensor{0.f, -1.f, 2.f})), {2, 0, 0, -1}, {4});
  const Tensor five{1.f, 2.f, 3.f, 4.f, 5.f};
  expect_signal(signal::fftshift(five), {4, 5, 1, 2, 3}, {5});
  expect_signal(signal::ifftshift(five), {3, 4, 5, 1, 2}, {5});
  expect_signal(real(signal::rfft2d(ones({2, 3}), {2, 2})), {4, 0, 0, 0}, {2, 2});
}

// The sum of the definition, for lengths with every kind of factor: small ones, primes and products of large primes.
TEST(Signal, AnyLength) {
  for (const int64_t n : {1, 2, 3, 4, 5, 6, 7, 12, 30, 31, 37, 49, 64, 74, 100, 121, 127, 1369}) {
    std::vector<C> x;
    for (int64_t i = 0; i < n; ++i)
      x.emplace_back(std::sin(static_cast<double>(i * i)), std::cos(3.0 * static_cast<double>(i)));
    const Tensor t = Tensor::of<C>(x);
    const Tensor forward = signal::fft(t), back = signal::ifft(forward);
    const std::vector<C> y = forward.to_vector<C>(), again = back.to_vector<C>();
    double worst = 0;
    for (int64_t k = 0; k < n; k += std::max<int64_t>(1, n / 50)) {
      C sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        sum += x[static_cast<size_t>(j)] *
               std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
      }
      worst = std::max(worst, std::abs(sum - y[static_cast<size_t>(k)]));
      worst = std::max(worst, std::abs(again[static_cast<size_t>(k)] - x[static_cast<size_t>(k)]));
    }
    EXPECT_LT(worst, 1e-12 * static_cast<double>(n + 10)) << n;
    const std::vector<C> half = signal::rfft(real(t)).to_vector<C>();
    const Tensor whole = signal::fft(complex(real(t), zeros_like(real(t))));
    const std::vector<C> all = whole.to_vector<C>();
    ASSERT_EQ(half.size(), static_cast<size_t>(n / 2 + 1));
    for (size_t k = 0; k < half.size(); ++k) EXPECT_LT(std::abs(half[k] - all[k]), 1e-12 * static_cast<double>(n + 10));
  }
}

TEST(Signal, TracedWithUnknownSizes) {
  const auto f = function([](Tensor x) { return real(signal::stft(x, 4, 2)); },
                          {.input_signature = {TensorSpec({-1}, DType::float32)}});
  expect_signal(f(ten()), {6, -3, 0, 10, -5, 0, 14, -7, 0, 18, -9, 0}, {4, 3});
}

TEST(Audio, WavsComeBack) {
  const Tensor sound{{0.5f, -0.25f}, {0.f, 0.75f}, {-1.f, 0.125f}};
  const audio::DecodedWav wav = audio::decode_wav(audio::encode_wav(sound, 44100));
  expect_signal(wav.audio, sound.to_vector<float>(), {3, 2});
  EXPECT_EQ(wav.sample_rate.item<int32_t>(), 44100);
}

}  // namespace
}  // namespace runnel
