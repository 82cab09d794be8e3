#include "runnel/tensor/profile_step.h"

namespace runnel::profile {

void StepScope::record() {
  if (dropped_ || !recording()) return;
  put({.kind = Kind::step,
       .begin_ticks = begin_ticks_,
       .end_ticks = now_ticks(),
       .step = number_,
       .name = name_,
       .payload = detail_});
}

void StepScope::record_open_steps() {
  for (StepScope* step = thread_context().step; step; step = step->outer_) {
    step->record();
    step->begin_ticks_ = now_ticks();  // a recording that begins before its end has what is left
  }
}

}  // namespace runnel::profile
