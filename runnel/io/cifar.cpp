#include "runnel/io/cifar.h"

#include "runnel/base/format.h"
#include "runnel/io/file_frame.h"

namespace runnel::io {
namespace {

constexpr size_t kPixels = 32 * 32, kRecord = 1 + 3 * kPixels;
constexpr int kClasses = 10;

}  // namespace

void append_cifar10(ByteSpan bytes, const std::string& name, Cifar10& out) {
  const size_t records = bytes.size() / kRecord;
  if (bytes.size() % kRecord != 0) {
    throw make_error(Code::data_loss, "[cifar10] {}: the file ends inside a record of {} bytes at byte {}", name,
                     kRecord, bytes.size());
  }
  out.labels.reserve(out.labels.size() + records);
  size_t to = out.images.size();
  out.images.resize(to + records * 3 * kPixels);
  for (size_t at = 0; at < bytes.size(); at += kRecord) {
    if (const auto label = static_cast<int>(bytes[at]); label >= kClasses) {
      throw make_error(Code::data_loss, "[cifar10] {}: no class {} at byte {}", name, label, at)
          .inside(file_frame(name, at));
    }
    out.labels.push_back(bytes[at]);
    const ByteSpan planes = bytes.subspan(at + 1, 3 * kPixels);
    for (size_t pixel = 0; pixel < kPixels; ++pixel) {
      for (size_t colour = 0; colour < 3; ++colour) out.images[to++] = planes[colour * kPixels + pixel];
    }
  }
  out.count += static_cast<int64_t>(records);
}

Cifar10 read_cifar10(const std::vector<std::string>& paths, Env& env) {
  Cifar10 all;
  for (const std::string& path : paths) append_cifar10(env.map(path)->bytes(), path, all);
  return all;
}

}  // namespace runnel::io
