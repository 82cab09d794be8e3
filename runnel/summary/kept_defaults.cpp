#include "runnel/summary/kept_defaults.h"

#include "runnel/ops/summary_writer.h"

namespace runnel::summary {

KeptDefaults::KeptDefaults() {
  const Defaults* now = thread_context().summary;
  if (!now || now->writer.is_noop()) return;
  Defaults kept;
  kept.writer = now->writer;
  kept.own_step = *now->step;
  if (now->condition) {
    // A function of the program is asked now: what it looks at need not live as long as the pipeline.
    const Tensor holds = should_record_summaries();
    if (!holds.is_symbolic() && !static_cast<bool>(holds)) return;
    if (holds.is_symbolic()) kept.condition = Condition(holds);
  }
  kept_ = std::make_shared<const Defaults>(std::move(kept));
}

KeptDefaults::Call::Call(const Defaults& kept)
    : mine_{.writer = kept.writer, .own_step = kept.own_step, .step = nullptr, .condition = kept.condition},
      scope_(&mine_) {
  mine_.step = &mine_.own_step;
}

KeptDefaults::Call::~Call() { summary_of(mine_.writer.handle()).events().schedule_flush(); }

}  // namespace runnel::summary
