#pragma once

// Internal: what pipelines tell profiles.
#include <cstdint>
#include <string>
#include <utility>

#include "runnel/base/format.h"
#include "runnel/base/profile_scope.h"
#include "runnel/data/item.h"
#include "runnel/data/pipeline.h"
#include "runnel/tensor/profile_step.h"

namespace runnel::data {

// The stage makes an element, or several, from here to the end of the block. The detail of the event is the user's line
// and, where that is not 1, the number of elements: "input.cpp:12, 32 elements". io/profile_input.cpp reads it.
class StageEvent {
 public:
  StageEvent(const StageStats& stage, const SourceSite& where)
      : span_(profile::Kind::stage, stage.path, profile::current_step()) {
    if (!span_) return;
    if (where.known()) detail_ = fmt::format("{}:{}", where.file, where.line);
    place_size_ = detail_.size();
    count(0);  // it stays so at the end of the data, and where an error is thrown
  }
  ~StageEvent() {
    if (span_) span_.set_detail(std::move(detail_));
  }
  StageEvent(const StageEvent&) = delete;
  StageEvent& operator=(const StageEvent&) = delete;

  // `item` is the element, or holds so many.
  void made(const Item& item, int64_t elements = 1) {
    if (!span_) return;
    span_.add_bytes(static_cast<int64_t>(bytes_of(item)));
    count(elements);
  }

 private:
  void count(int64_t elements) {
    detail_.resize(place_size_);
    if (elements != 1) detail_ += fmt::format("{}{} elements", place_size_ > 0 ? ", " : "", elements);
  }

  profile::Span span_;
  std::string detail_;
  size_t place_size_ = 0;  // of the user's line in detail_
};

}  // namespace runnel::data
