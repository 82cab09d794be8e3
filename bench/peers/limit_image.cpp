// Photographs read, decoded by libjpeg-turbo and resized by hand, with nothing else: what a pipeline can reach.
#include <immintrin.h>

#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
// jpeglib.h wants FILE and size_t first.
#include <jpeglib.h>

#include "bench/common.h"
#include "bench/photographs.h"

namespace {

using bench::kSide;

// RGB into `out`, which grows; one decoder serves a thread.
struct Decoder {
  jpeg_decompress_struct c{};
  jpeg_error_mgr err{};
  std::vector<uint8_t> pixels;

  Decoder() {
    c.err = jpeg_std_error(&err);
    jpeg_create_decompress(&c);
  }
  ~Decoder() { jpeg_destroy_decompress(&c); }
  void decode(const char* data, size_t n) {
    jpeg_mem_src(&c, reinterpret_cast<const unsigned char*>(data), n);
    jpeg_read_header(&c, TRUE);
    c.out_color_space = JCS_RGB;
    c.dct_method = JDCT_IFAST;
    jpeg_start_decompress(&c);
    const size_t stride = size_t{c.output_width} * 3;
    pixels.resize(stride * c.output_height + 16);
    while (c.output_scanline < c.output_height) {
      JSAMPROW rows[16];
      const int count = static_cast<int>(std::min<JDIMENSION>(16, c.output_height - c.output_scanline));
      for (int i = 0; i < count; ++i) rows[i] = pixels.data() + (c.output_scanline + static_cast<size_t>(i)) * stride;
      jpeg_read_scanlines(&c, rows, static_cast<JDIMENSION>(count));
    }
    jpeg_finish_decompress(&c);
  }
};

// Bilinear with half-pixel centres, times `scale`: rows blended first, then pixels of four floats.
struct Resizer {
  int width = 0;
  std::vector<int> x0;
  std::vector<float> fx, line;

  void prepare(int w) {
    if (w == width) return;
    width = w;
    x0.resize(kSide), fx.resize(kSide), line.resize(static_cast<size_t>(w) * 3 + 16);
    for (int i = 0; i < kSide; ++i) {
      const float at = std::max(0.f, (static_cast<float>(i) + .5f) * static_cast<float>(w) / kSide - .5f);
      const int low = std::min(static_cast<int>(at), w - 2);
      x0[static_cast<size_t>(i)] = low * 3;
      fx[static_cast<size_t>(i)] = std::min(1.f, at - static_cast<float>(low));
    }
  }
  void rows(const uint8_t* from, int h, int w, float scale, float* to, int begin, int end, float* t) const {
    const int n = w * 3;
    for (int j = begin; j < end; ++j) {
      const float at = std::max(0.f, (static_cast<float>(j) + .5f) * static_cast<float>(h) / kSide - .5f);
      const int low = std::min(static_cast<int>(at), h - 2);
      const float f = std::min(1.f, at - static_cast<float>(low)), a = (1 - f) * scale, b = f * scale;
      const uint8_t* __restrict p = from + static_cast<size_t>(low) * static_cast<size_t>(n);
      const uint8_t* __restrict q = p + n;
      float* __restrict s = t;
      for (int i = 0; i < n; ++i) s[i] = static_cast<float>(p[i]) * a + static_cast<float>(q[i]) * b;
      float* o = to + static_cast<size_t>(j) * kSide * 3;
      for (int i = 0; i < kSide; ++i) {
        const __m128 u = _mm_loadu_ps(t + x0[static_cast<size_t>(i)]);
        const __m128 v = _mm_loadu_ps(t + x0[static_cast<size_t>(i)] + 3);
        const __m128 r = _mm_fmadd_ps(_mm_sub_ps(v, u), _mm_set1_ps(fx[static_cast<size_t>(i)]), u);
        if (i + 1 < kSide) {
          _mm_storeu_ps(o + i * 3, r);
        } else {
          float last[4];
          _mm_storeu_ps(last, r);
          std::memcpy(o + i * 3, last, 12);
        }
      }
    }
  }
};

struct Worker {
  Decoder decoder;
  Resizer resizer;
  std::string bytes;

  void read(const std::string& path) {
    FILE* f = std::fopen(path.c_str(), "rb");
    std::fseek(f, 0, SEEK_END);
    bytes.resize(static_cast<size_t>(std::ftell(f)));
    std::rewind(f);
    if (std::fread(bytes.data(), 1, bytes.size(), f) != bytes.size()) std::abort();
    std::fclose(f);
  }
  void resize(float* to) {
    const int w = static_cast<int>(decoder.c.output_width), h = static_cast<int>(decoder.c.output_height);
    resizer.prepare(w);
    resizer.rows(decoder.pixels.data(), h, w, 1 / 255.f, to, 0, kSide, resizer.line.data());
  }
};

// Calls body(worker, i) for i < count, on `threads` threads that take the next one as they come.
template <class Body>
std::function<void()> over_photographs(int threads, int count, Body body) {
  auto workers = std::make_shared<std::vector<std::unique_ptr<Worker>>>();
  for (int t = 0; t < threads; ++t) workers->push_back(std::make_unique<Worker>());
  return [=] {
    std::atomic<int> next{0};
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        for (int i; (i = next++) < count;) body(*(*workers)[static_cast<size_t>(t)], i);
      });
    }
    for (auto& t : pool) t.join();
  };
}

std::vector<std::string> contents() {
  std::vector<std::string> all;
  for (const std::string& f : bench::photographs()) all.push_back(bench::read_file(f));
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::Case> cases = {
      {"jpeg_pipeline",
       [](int threads) {
         // Two batches, as a consumer that holds one while the next is made would need.
         auto batches = std::make_shared<std::vector<float>>(size_t{2} * bench::kBatch * kSide * kSide * 3);
         return std::vector{over_photographs(
             threads, bench::kPasses * bench::kPhotographs, [batches, files = bench::photographs()](Worker& w, int i) {
               w.read(files[static_cast<size_t>(i % bench::kPhotographs)]);
               w.decoder.decode(w.bytes.data(), w.bytes.size());
               w.resize(batches->data() + static_cast<size_t>(i % (2 * bench::kBatch)) * kSide * kSide * 3);
             })};
       }},
      {"jpeg_decode",
       [](int threads) {
         return std::vector{over_photographs(threads, bench::kPhotographs, [all = contents()](Worker& w, int i) {
           const std::string& s = all[static_cast<size_t>(i)];
           w.decoder.decode(s.data(), s.size());
         })};
       }},
      {"image_resize",
       [](int threads) {
         auto w = std::make_shared<Worker>();
         const std::string s = contents()[0];
         w->decoder.decode(s.data(), s.size());
         auto out = std::make_shared<std::vector<float>>(size_t{kSide} * kSide * 3);
         const int width = static_cast<int>(w->decoder.c.output_width);
         const int height = static_cast<int>(w->decoder.c.output_height);
         w->resizer.prepare(width);
         return std::vector{std::function<void()>([=] {
#pragma omp parallel for num_threads(threads) schedule(static)
           for (int part = 0; part < threads; ++part) {
             thread_local std::vector<float> line;
             line.resize(static_cast<size_t>(width) * 3 + 16);
             w->resizer.rows(w->decoder.pixels.data(), height, width, 1, out->data(), kSide * part / threads,
                             kSide * (part + 1) / threads, line.data());
           }
         })};
       }},
  };
  return bench::main_of(argc, argv, cases, [](int) {});
}
