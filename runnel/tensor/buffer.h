#pragma once

#include <cstddef>
#include <memory>

#include "runnel/base/export.h"
#include "runnel/base/ref.h"
#include "runnel/tensor/device.h"
#include "runnel/tensor/dtype.h"

namespace runnel {

// Reference-counted memory on one device, 64-byte aligned. Elements that are not plain bytes (strings, handles)
// are constructed with it and destroyed with it.
class RUNNEL_API Buffer : public RefCounted<Buffer> {
 public:
  static Ref<Buffer> allocate(Device& device, DType dtype, size_t count);
  // Foreign host memory, kept alive by `owner`; never written by the library.
  static Ref<Buffer> wrap(const void* data, size_t bytes, std::shared_ptr<const void> owner);

  Device& device() const { return *device_; }
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool is_foreign() const { return owner_ != nullptr; }

 private:
  friend class RefCounted<Buffer>;
  Buffer(Device& device, DType dtype, void* data, size_t bytes)
      : device_(&device), data_(data), bytes_(bytes), dtype_(dtype) {}
  ~Buffer() = default;
  void destroy();
  void construct_elements();
  void destroy_elements();

  Device* device_;
  void* data_;
  size_t bytes_;
  DType dtype_;
  std::shared_ptr<const void> owner_;
};

}  // namespace runnel
