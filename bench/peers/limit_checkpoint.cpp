// The bytes of the tensors and nothing else: a loop that writes them into one file and syncs it, and one that reads
// them into memory that is there already.
#include <fcntl.h>
#include <unistd.h>

#include <memory>

#include "bench/checkpoint_tensors.h"
#include "bench/common.h"

namespace {

using Call = std::function<void()>;

struct Raw {
  std::string path = bench::checkpoint_folder() + "/runnel_bench_limit_" + std::to_string(::getpid());
  std::vector<std::vector<float>> tensors;

  Raw() {
    for (const auto& dims : bench::checkpoint_shapes()) {
      size_t count = 1;
      for (const int64_t size : dims) count *= static_cast<size_t>(size);
      tensors.emplace_back(count);
      bench::fill(tensors.back().data(), count, static_cast<unsigned>(tensors.size()));
    }
  }
  ~Raw() { ::unlink(path.c_str()); }

  void write() {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    for (const auto& each : tensors) {
      const auto* p = reinterpret_cast<const char*>(each.data());
      for (size_t left = each.size() * sizeof(float); left > 0;) {
        const ssize_t n = ::write(fd, p, left);
        if (n <= 0) std::abort();
        p += n;
        left -= static_cast<size_t>(n);
      }
    }
    if (::fsync(fd) != 0 || ::close(fd) != 0) std::abort();
  }
  void read() {
    const int fd = ::open(path.c_str(), O_RDONLY);
    for (auto& each : tensors) {
      auto* p = reinterpret_cast<char*>(each.data());
      for (size_t left = each.size() * sizeof(float); left > 0;) {
        const ssize_t n = ::read(fd, p, left);
        if (n <= 0) std::abort();
        p += n;
        left -= static_cast<size_t>(n);
      }
    }
    ::close(fd);
  }
};

std::vector<Call> save() {
  auto raw = std::make_shared<Raw>();
  return {[raw] { raw->write(); }};
}

std::vector<Call> restore() {
  auto raw = std::make_shared<Raw>();
  raw->write();
  return {[raw] { raw->read(); }};
}

}  // namespace

int main(int argc, char** argv) {
  return bench::main_of(
      argc, argv, {{"ckpt_save_1gb", [](int) { return save(); }}, {"ckpt_restore_1gb", [](int) { return restore(); }}},
      [](int) {});
}
