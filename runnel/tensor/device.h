#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "runnel/base/export.h"

namespace runnel {

// Kinds of device have small numbers, the first index of an op's kernel table. The host CPU is 0.
using DeviceKind = int;
inline constexpr DeviceKind kCpu = 0;
inline constexpr int kMaxDeviceKinds = 4;

// A place where tensors live and kernels run. Work given to a device runs in the order it was enqueued;
// enqueueing may return before it ran. Memory of a device other than the host must not be touched through
// its address: bytes cross with the two copies below, which are ordered with the work.
class RUNNEL_API Device {
 public:
  Device(DeviceKind kind, std::string name);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  DeviceKind kind() const { return kind_; }
  bool is_host() const { return kind_ == kCpu; }
  const std::string& name() const { return name_; }  // "/device:CPU:0"

  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* block, size_t bytes) noexcept = 0;
  // Both return when the host side may be reused or read; an error of earlier work is thrown here.
  virtual void copy_from_host(void* to, const void* from, size_t bytes) = 0;
  virtual void copy_to_host(void* to, const void* from, size_t bytes) = 0;
  virtual void enqueue(std::function<void()> work) = 0;
  virtual void synchronize() = 0;

  static Device& cpu();
  static bool others_exist();  // was there ever one that is not the host?

 private:
  DeviceKind kind_;
  std::string name_;
};

}  // namespace runnel
