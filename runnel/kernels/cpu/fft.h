#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace runnel::cpu {

// Discrete Fourier transforms of one length: y[k] = sum over j of x[j] exp(-2 pi i j k / n), with + for the inverse,
// which is not divided by n. Lengths of small prime factors take n log n steps by themselves; others go through a
// convolution with one that does (Bluestein). T is float or double.
template <class T>
class FourierPlan {
 public:
  using Complex = std::complex<T>;

  FourierPlan(int64_t n, bool inverse);
  int64_t size() const { return n_; }
  int64_t scratch_size() const;  // of run()
  size_t bytes() const;
  // x becomes its transform; scratch has scratch_size() elements.
  void run(Complex* x, Complex* scratch) const;

 private:
  void stages(Complex* x, Complex* scratch) const;
  void convolve(Complex* x, Complex* scratch) const;

  int64_t n_;
  std::vector<int64_t> radices_;
  std::vector<Complex> roots_;  // exp(-+ 2 pi i k / n)
  // For Bluestein: exp(-+ pi i k k / n), and the transform of its conjugate as long as the convolution.
  std::unique_ptr<FourierPlan> forward_, backward_;
  std::vector<Complex> chirp_, kernel_;
};

// The transform along one axis of a dense array [outer, n, inner], in place.
template <class T>
void fourier_axis(std::complex<T>* x, int64_t outer, int64_t n, int64_t inner, bool inverse);

// Rows of `n` real numbers (`stride` apart) to rows of n / 2 + 1 complex ones: the transform without the half that
// mirrors the other.
template <class T>
void real_to_complex(const T* x, int64_t rows, int64_t n, int64_t stride, std::complex<T>* y);
// And back, not divided by n: rows of n / 2 + 1 numbers that stand for n. Imaginary parts where the transform of real
// numbers has none do not count.
template <class T>
void complex_to_real(const std::complex<T>* x, int64_t rows, int64_t n, T* y);

}  // namespace runnel::cpu
