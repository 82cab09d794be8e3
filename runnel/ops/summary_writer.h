#pragma once

// Internal: what the handle of a summary writer refers to.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "runnel/io/event.h"
#include "runnel/io/event_writer.h"
#include "runnel/ops/named_resources.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

class RUNNEL_API SummaryResource : public Object {
 public:
  ~SummaryResource() override;
  std::string describe() const override;

  // Opens its file, unless that has been done.
  void create(const std::string& logdir, const io::EventWriterOptions& options);
  bool has_file() const { return events_.load(std::memory_order_acquire) != nullptr; }
  io::EventWriter& events() const;  // an Error before create()

  // Ends its file and forgets its name: who asks for that name next gets a new writer.
  void close();

  // These give false where a writer that keeps going drops what it is given.
  // A value with a tag, as TF 2's WriteSummary writes it.
  bool write(int64_t step, std::string_view tag, const Tensor& value, std::string_view metadata) const;
  // The same of a float32 scalar, of which there are many.
  bool write_scalar(int64_t step, std::string_view tag, float value, std::string_view metadata) const;
  // What is not one value: a graph, a whole Summary message.
  bool write_event(int64_t step, io::EventKind kind, std::string_view body) const;

 private:
  std::mutex creating_;
  std::unique_ptr<io::EventWriter> owned_;
  std::atomic<io::EventWriter*> events_ = nullptr;
};

// The writer of a name, made unless there is one; without a name a new one. A named one lives until it is closed, at
// the latest by a normal end of the program.
std::shared_ptr<SummaryResource> named_summary(const std::string& container, const std::string& name,
                                               const ResourceHome& home);

RUNNEL_API Tensor handle_to_summary(std::shared_ptr<SummaryResource> writer);
RUNNEL_API SummaryResource& summary_of(const Tensor& handle);  // an Error where it refers to something else

}  // namespace runnel
