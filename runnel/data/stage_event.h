#pragma once

// Internal: what pipelines tell profiles.
#include "runnel/base/format.h"
#include "runnel/base/profile_scope.h"
#include "runnel/data/item.h"
#include "runnel/data/pipeline.h"
#include "runnel/tensor/profile_step.h"

namespace runnel::data {

// The stage makes an element, or several, from here to the end of the block.
class StageEvent {
 public:
  StageEvent(const StageStats& stage, const SourceSite& where)
      : span_(profile::Kind::stage, stage.path, profile::current_step()) {
    if (span_ && where.known()) span_.set_detail(fmt::format("{}:{}", where.file, where.line));
  }
  void made(const Item& item) {
    if (span_) span_.add_bytes(static_cast<int64_t>(bytes_of(item)));
  }

 private:
  profile::Span span_;
};

}  // namespace runnel::data
