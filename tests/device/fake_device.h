#pragma once

// A device for tests: its queue runs on a thread of its own, its addresses cannot be read by the host. Whatever
// touches device memory from the host or forgets to wait fails here before a real device shows it.
#include <sys/mman.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "runnel/base/error.h"
#include "runnel/base/flush_denormals.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/registry.h"
#include "runnel/tensor/device.h"

namespace runnel::test {

inline constexpr DeviceKind kFake = 1;

class FakeDevice : public Device {
 public:
  explicit FakeDevice(const char* name) : Device(kFake, name), worker_([this] { work(); }) {}
  ~FakeDevice() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      held_ = false;
    }
    changed_.notify_all();
    worker_.join();
  }

  void* allocate(size_t bytes) override {
    const size_t size = (bytes + 4095) / 4096 * 4096 + 4096;
    void* address = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) throw Error(Code::resource_exhausted, "the fake device is full");
    std::lock_guard lock(mutex_);
    blocks_[static_cast<char*>(address)] = Block{std::make_unique<char[]>(size), size};
    return address;
  }
  void release(void* block, size_t) noexcept override {
    std::lock_guard lock(mutex_);
    auto it = blocks_.find(static_cast<char*>(block));
    munmap(block, it->second.size);
    blocks_.erase(it);
  }
  void copy_from_host(void* to, const void* from, size_t bytes) override {
    enqueue([this, to, from, bytes] { std::memcpy(real(to), from, bytes); });
    synchronize();
  }
  void copy_to_host(void* to, const void* from, size_t bytes) override {
    enqueue([this, to, from, bytes] { std::memcpy(to, real(from), bytes); });
    synchronize();
  }
  void enqueue(std::function<void()> item) override {
    {
      std::lock_guard lock(mutex_);
      queue_.push_back(std::move(item));
    }
    changed_.notify_all();
  }
  void synchronize() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.empty() && !running_; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  // Where the bytes of an address of this device really are; for work on the queue.
  char* real(const void* address) {
    std::lock_guard lock(mutex_);
    auto it = std::prev(blocks_.upper_bound(static_cast<char*>(const_cast<void*>(address))));
    return it->second.bytes.get() + (static_cast<const char*>(address) - it->first);
  }

  // While held, nothing on the queue runs.
  void hold(bool on) {
    {
      std::lock_guard lock(mutex_);
      held_ = on;
    }
    changed_.notify_all();
  }
  size_t pending() {
    std::lock_guard lock(mutex_);
    return queue_.size() + (running_ ? 1 : 0);
  }
  size_t blocks() {
    std::lock_guard lock(mutex_);
    return blocks_.size();
  }

 private:
  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size;
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || (!held_ && !queue_.empty()); });
      if (queue_.empty()) return;
      {
        std::function<void()> item = std::move(queue_.front());
        queue_.pop_front();
        running_ = true;
        lock.unlock();
        std::exception_ptr error;
        try {
          item();
        } catch (...) {
          error = std::current_exception();
        }
        item = nullptr;  // lets go of tensors while unlocked: release() locks
        lock.lock();
        if (error && !error_) error_ = error;
      }
      running_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::map<char*, Block> blocks_;
  std::exception_ptr error_;
  bool running_ = false;
  bool held_ = false;
  bool stop_ = false;
  std::thread worker_;  // last: it uses the others
};

// The fake device's kernel of every op: the host's kernel over the real bytes, on the queue.
class QueuedCall {
 public:
  static void kernel(KernelContext& c) {
    auto& device = static_cast<FakeDevice&>(c.device());
    auto call = std::make_shared<QueuedCall>(c, device);
    bool known = true;
    for (int i = 0; i < c.num_outputs(); ++i) {
      // Outputs that have to be allocated, handed on or read by the host exist when the kernel returns.
      known = known && c.out(i).defined() && !c.out(i).device().is_host();
    }
    if (hands_on(c.op())) {
      call->run_host_kernel(call->inputs_, call->outputs_);
      for (int i = 0; i < c.num_outputs(); ++i) c.forward(i, call->outputs_[static_cast<size_t>(i)]);
    } else if (known) {
      device.enqueue([call] { call->run(); });
    } else {
      device.enqueue([call] { call->run(); });
      device.synchronize();
      for (int i = 0; i < c.num_outputs(); ++i) {
        const Tensor& made = call->outputs_[static_cast<size_t>(i)];
        c.forward(i, made.device().is_host() ? made.to(c.op().output_home(i, made.dtype(), device)) : made);
      }
    }
  }

  QueuedCall(KernelContext& c, FakeDevice& device) : op_(c.op()), device_(device) {
    if (op_.attrs.copy) attrs_ = op_.attrs.copy(c.raw_attrs());
    for (int i = 0; i < c.num_inputs(); ++i) inputs_.push_back(c.in(i));
    for (int i = 0; i < c.num_outputs(); ++i) {
      outputs_.push_back(c.out(i));
      dtypes_.push_back(c.output_dtype(i));
    }
  }

 private:
  // Ops whose kernels never look at the elements: their outputs are their inputs' memory in another shape.
  static bool hands_on(const OpDef& op) {
    static const std::set<std::string> names = {"EnsureShape", "ExpandDims", "Identity",    "IdentityN",
                                                "Reshape",     "Squeeze",    "StopGradient"};
    return names.count(op.name) > 0;
  }

  void run() {
    std::vector<Tensor> in;
    std::vector<Tensor> out;
    for (const Tensor& t : inputs_) in.push_back(host_face(t));
    for (const Tensor& t : outputs_) out.push_back(host_face(t));
    run_host_kernel(in, out);
    for (size_t i = 0; i < out.size(); ++i) {
      if (!outputs_[i].defined() || outputs_[i].device().is_host()) {
        outputs_[i] = out[i];
      } else if (out[i].raw() != device_.real(outputs_[i].raw())) {  // the kernel handed on something else
        std::memcpy(device_.real(outputs_[i].raw()), out[i].raw(), out[i].num_bytes());
      }
    }
  }

  // The same elements at the address where they really are.
  Tensor host_face(const Tensor& t) const {
    if (!t.defined() || t.device().is_host()) return t;
    return Tensor::wrap(t.dtype(), t.shape(), device_.real(t.raw()), std::make_shared<Tensor>(t));
  }

  void run_host_kernel(const std::vector<Tensor>& in, std::vector<Tensor>& out) const {
    std::vector<const Tensor*> inputs;
    for (const Tensor& t : in) inputs.push_back(&t);
    DType key = DType::invalid;
    for (size_t i = 0; i < in.size(); ++i) {
      if (op_.input_spec(static_cast<int>(i), static_cast<int>(in.size())).type_var == 0) key = in[i].dtype();
    }
    KernelContext context(op_, inputs, attrs_.get(), out.data(), dtypes_.data(), static_cast<int>(out.size()),
                          Device::cpu());
    try {
      const FlushDenormals flush;  // as dispatch does around kernels of the host
      op_.kernel(kCpu, key)(context);
    } catch (const Error& e) {
      throw Error(e.code(), "[" + op_.name + "] " + e.what() + "; " + describe_call(op_, inputs));
    }
  }

  const OpDef& op_;
  FakeDevice& device_;
  SharedAttrs attrs_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<DType> dtypes_;
};

// The device, with a kernel for every op but those that work on state and those that the host runs.
inline FakeDevice& fake_device() {
  static auto* device = [] {
    for (const OpDef* op : registry().all()) {
      if (!op->stateful && !op->any_device)
        mutable_registry().set_kernel(op->name, kFake, DType::invalid, &QueuedCall::kernel);
    }
    return new FakeDevice("/device:FAKE:0");
  }();
  return *device;
}

}  // namespace runnel::test
