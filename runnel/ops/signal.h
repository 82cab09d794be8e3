#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runnel/op/operand.h"

// Fourier transforms over the last one, two or three dimensions, and what is made of them.
namespace runnel::signal {

// Of complex numbers, as long as the input. The inverse is divided by the number of elements, so that it is one.
RUNNEL_API Tensor fft(const Operand& input);
RUNNEL_API Tensor ifft(const Operand& input);
RUNNEL_API Tensor fft2d(const Operand& input);
RUNNEL_API Tensor ifft2d(const Operand& input);
RUNNEL_API Tensor fft3d(const Operand& input);
RUNNEL_API Tensor ifft3d(const Operand& input);

// Of real numbers: of the last dimension, n long, only the n / 2 + 1 results that the others do not follow from. The
// input is cut or padded with zeros to fft_length, one size for each dimension that is transformed; without it, it is
// taken as it is. The inverse makes fft_length real numbers, without it 2 (n - 1) in the last dimension.
RUNNEL_API Tensor rfft(const Operand& input_tensor, const std::vector<int64_t>& fft_length = {});
RUNNEL_API Tensor irfft(const Operand& input_tensor, const std::vector<int64_t>& fft_length = {});
RUNNEL_API Tensor rfft2d(const Operand& input_tensor, const std::vector<int64_t>& fft_length = {});
RUNNEL_API Tensor irfft2d(const Operand& input_tensor, const std::vector<int64_t>& fft_length = {});
RUNNEL_API Tensor rfft3d(const Operand& input_tensor, const std::vector<int64_t>& fft_length = {});
RUNNEL_API Tensor irfft3d(const Operand& input_tensor, const std::vector<int64_t>& fft_length = {});

// Frequency 0 moved to the middle of the given axes (all of them when none are given), and back.
RUNNEL_API Tensor fftshift(const Operand& x, const std::vector<int64_t>& axes = {});
RUNNEL_API Tensor ifftshift(const Operand& x, const std::vector<int64_t>& axes = {});

// --- windows of window_length numbers; a periodic one leaves out the last number of a symmetric one that is longer ---

RUNNEL_API Tensor hann_window(int64_t window_length, bool periodic = true, DType dtype = DType::float32,
                              SourceSite where = SourceSite::current());
RUNNEL_API Tensor hamming_window(int64_t window_length, bool periodic = true, DType dtype = DType::float32,
                                 SourceSite where = SourceSite::current());
RUNNEL_API Tensor vorbis_window(int64_t window_length, DType dtype = DType::float32,
                                SourceSite where = SourceSite::current());

// --- pieces of signals ---

// Pieces of frame_length numbers that begin frame_step apart, along a new dimension before the last. With pad_end the
// last pieces reach past the end, where they have pad_value.
RUNNEL_API Tensor frame(const Operand& signal, int64_t frame_length, int64_t frame_step, bool pad_end = false,
                        const Operand& pad_value = 0, int axis = -1);
// The pieces [..., frames, frame_length] laid out frame_step apart, added where they overlap.
RUNNEL_API Tensor overlap_and_add(const Operand& signal, int64_t frame_step);

// What makes a window of a length and dtype: hann_window, hamming_window, ...
using WindowFn = std::function<Tensor(int64_t window_length, DType dtype)>;
RUNNEL_API WindowFn default_window();  // the periodic Hann window
inline constexpr std::nullptr_t no_window = nullptr;

// The spectrum of every piece of the signal: complex [..., frames, fft_length / 2 + 1]. fft_length is the smallest
// power of two that holds a frame unless given.
RUNNEL_API Tensor stft(const Operand& signals, int64_t frame_length, int64_t frame_step, int64_t fft_length = -1,
                       const WindowFn& window_fn = default_window(), bool pad_end = false);
// The signal of such spectra, its pieces multiplied by the window and added up; with the window that
// inverse_stft_window_fn gives, the signal that stft was made of.
RUNNEL_API Tensor inverse_stft(const Operand& stfts, int64_t frame_length, int64_t frame_step, int64_t fft_length = -1,
                               const WindowFn& window_fn = default_window());
RUNNEL_API WindowFn inverse_stft_window_fn(int64_t frame_step, const WindowFn& forward_window_fn = default_window());

// --- the cosine transform, and the mel scale of what people hear ---

// The discrete cosine transform of the last dimension, type 2 (unless 1, 3 or 4 is named), cut or padded to n
// numbers. norm "ortho" makes it orthonormal.
RUNNEL_API Tensor dct(const Operand& input, int type = 2, int64_t n = -1, const std::string& norm = {});
RUNNEL_API Tensor idct(const Operand& input, int type = 2, const std::string& norm = {});

struct MelOptions {
  int64_t num_mel_bins = 20;
  int64_t num_spectrogram_bins = 129;
  double sample_rate = 8000;
  double lower_edge_hertz = 125;
  double upper_edge_hertz = 3800;
  DType dtype = DType::float32;
};
// [num_spectrogram_bins, num_mel_bins]: multiplies magnitudes of frequencies into those of mel bands.
RUNNEL_API Tensor linear_to_mel_weight_matrix(const MelOptions& options = {}, SourceSite where = SourceSite::current());
RUNNEL_API Tensor mfccs_from_log_mel_spectrograms(const Operand& log_mel_spectrograms);

}  // namespace runnel::signal
