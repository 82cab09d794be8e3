#include "runnel/tensor/buffer.h"

#include <atomic>
#include <cstring>
#include <new>

#include "runnel/tensor/allocator.h"

namespace runnel {
namespace {

constinit std::atomic<bool> beyond_the_host = false;

// A host buffer and its header are one block: the header fills the first cache line(s).
constexpr size_t kHeader = (sizeof(Buffer) + 63) / 64 * 64;

class CpuDevice : public Device {
 public:
  CpuDevice() : Device(kCpu, "/device:CPU:0") {}
  void* allocate(size_t bytes) override { return host_memory::allocate(bytes); }
  void release(void* block, size_t bytes) noexcept override { host_memory::release(block, bytes); }
  void copy_from_host(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_to_host(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void enqueue(std::function<void()> work) override { work(); }
  void synchronize() override {}
};

template <class F>
void with_object_type(DType dtype, F&& f) {
  if (dtype == DType::string) f.template operator()<Bytes>();
  if (dtype == DType::resource) f.template operator()<ResourceHandle>();
  if (dtype == DType::variant) f.template operator()<VariantValue>();
}

}  // namespace

Device::Device(DeviceKind kind, std::string name) : kind_(kind), name_(std::move(name)) {
  if (kind != kCpu) beyond_the_host.store(true, std::memory_order_relaxed);
}
bool Device::others_exist() { return beyond_the_host.load(std::memory_order_relaxed); }

Device& Device::cpu() {
  static auto* device = new CpuDevice;  // never destroyed: static tensors may outlive main
  return *device;
}

Ref<Buffer> Buffer::allocate(Device& device, DType dtype, size_t count) {
  const size_t bytes = count * dtype_size(dtype);
  if (device.is_host()) {
    char* block = static_cast<char*>(host_memory::allocate(kHeader + bytes));
    auto buffer = Ref<Buffer>::adopt(new (block) Buffer(device, dtype, block + kHeader, bytes));
    if (!is_plain(dtype)) buffer->construct_elements();
    return buffer;
  }
  void* block = host_memory::allocate(kHeader);
  auto* buffer = new (block) Buffer(device, dtype, nullptr, bytes);
  auto ref = Ref<Buffer>::adopt(buffer);
  buffer->data_ = device.allocate(bytes);
  return ref;
}

Ref<Buffer> Buffer::wrap(const void* data, size_t bytes, std::shared_ptr<const void> owner) {
  void* block = host_memory::allocate(kHeader);
  auto* buffer = new (block) Buffer(Device::cpu(), DType::uint8, const_cast<void*>(data), bytes);
  buffer->owner_ = std::move(owner);
  return Ref<Buffer>::adopt(buffer);
}

void Buffer::construct_elements() {
  with_object_type(dtype_, [this]<class T>() {
    for (T *p = static_cast<T*>(data_), *end = p + bytes_ / sizeof(T); p != end; ++p) new (p) T();
  });
}

void Buffer::destroy_elements() {
  with_object_type(dtype_, [this]<class T>() {
    for (T *p = static_cast<T*>(data_), *end = p + bytes_ / sizeof(T); p != end; ++p) p->~T();
  });
}

void Buffer::destroy() {
  size_t block_bytes = kHeader;
  if (owner_ == nullptr) {
    if (device_->is_host()) {
      if (!is_plain(dtype_)) destroy_elements();
      block_bytes += bytes_;
    } else if (data_) {
      device_->release(data_, bytes_);
    }
  }
  void* block = this;
  this->~Buffer();
  host_memory::release(block, block_bytes);
}

}  // namespace runnel
