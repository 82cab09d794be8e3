#pragma once

// Internal: what the handle of a summary writer refers to.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "runnel/io/event_writer.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

class RUNNEL_API SummaryResource : public Object {
 public:
  ~SummaryResource() override;
  std::string describe() const override;

  // Opens its file, unless that has been done.
  void create(const std::string& logdir, const io::EventWriterOptions& options);
  io::EventWriter& events() const;  // an Error before create()

  // A value with a tag, as TF 2's WriteSummary writes it.
  void write(int64_t step, std::string_view tag, const Tensor& value, std::string_view metadata) const;
  // The same of a float32 scalar, of which there are many.
  void write_scalar(int64_t step, std::string_view tag, float value, std::string_view metadata) const;

 private:
  std::mutex creating_;
  std::unique_ptr<io::EventWriter> owned_;
  std::atomic<io::EventWriter*> events_ = nullptr;
};

RUNNEL_API Tensor handle_to_summary(std::shared_ptr<SummaryResource> writer);
RUNNEL_API SummaryResource& summary_of(const Tensor& handle);  // an Error where it refers to something else

}  // namespace runnel
