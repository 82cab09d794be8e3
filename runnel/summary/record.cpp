#include "runnel/summary/record.h"

#include "runnel/base/format.h"
#include "runnel/function/control_flow.h"
#include "runnel/io/event.h"
#include "runnel/op/dispatch.h"

namespace runnel::summary {
namespace {

Step chosen_step(const Step& step) {
  const Step chosen = step.defined() ? step : experimental::get_step();
  if (!chosen.defined()) {
    throw invalid_argument("[summary] there is no step: give one, or call summary::experimental::set_step");
  }
  return chosen;
}

}  // namespace

const Tensor& truth_value(bool value) {
  static const Tensor yes(true), no(false);
  return value ? yes : no;
}

const SummaryResource* eager_writer() {
  const Defaults* defaults = thread_context().summary;
  if (!defaults || defaults->writer.is_noop()) return nullptr;
  if (defaults->condition && !static_cast<bool>(should_record_summaries())) return nullptr;
  return &summary_of(defaults->writer.handle());
}

int64_t eager_step(const Step& step) { return step.defined() ? step.number() : chosen_step(step).number(); }

Tensor recorded(const char* what, const Step& step, FunctionRef<void(const Tensor&, const Tensor&)> put) {
  const Defaults* defaults = thread_context().summary;
  if (!defaults || defaults->writer.is_noop()) return truth_value(false);
  const Tensor holds = should_record_summaries();
  const auto write_now = [&] { put(defaults->writer.handle(), chosen_step(step).tensor()); };
  if (!is_tracing() || !holds.is_symbolic()) {
    if (!static_cast<bool>(holds)) return truth_value(false);
    write_now();
    return truth_value(is_tracing() || !summary_of(defaults->writer.handle()).events().has_failed());
  }
  auto yes = [&] {
    write_now();
    return Tensor(true);
  };
  auto no = [] { return Tensor(false); };
  return function_detail::choose(what, holds, yes, no);
}

Tensor record(const char* what, std::string_view tag, FunctionRef<Tensor()> make, const Step& step,
              std::string_view metadata) {
  if (!is_tracing()) {
    const SummaryResource* writer = eager_writer();
    return truth_value(writer && writer->write(eager_step(step), tag, make().to_host(), metadata));
  }
  return recorded(what, step, [&](const Tensor& writer, const Tensor& now) {
    static const Op<> op("WriteSummary");
    op.many({writer, now, make(), Tensor(tag), Tensor(metadata)});
  });
}

std::string serialized_metadata(std::string_view plugin, std::string_view content, std::string_view display_name,
                                std::string_view description) {
  std::string data, metadata;
  if (!plugin.empty()) io::append_field(data, 1, plugin);
  if (!content.empty()) io::append_field(data, 2, content);
  if (!data.empty()) io::append_field(metadata, 1, data);
  if (!display_name.empty()) io::append_field(metadata, 2, display_name);
  if (!description.empty()) io::append_field(metadata, 3, description);
  return metadata;
}

}  // namespace runnel::summary
