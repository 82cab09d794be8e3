#pragma once

// Internal: how every kind of summary comes to its writer.
#include <string>
#include <string_view>

#include "runnel/base/function_ref.h"
#include "runnel/ops/summary_writer.h"
#include "runnel/summary/writer.h"

namespace runnel::summary {

// Where and whether to write now, without ops: null where nothing is to be written. Not while tracing.
const SummaryResource* eager_writer();
int64_t eager_step(const Step& step);  // the default where it is not given

const Tensor& truth_value(bool value);

// Calls `put(writer, step)` where summaries are recorded: at once, or as a part of the graph that is traced. `what` is
// the kind that errors name.
Tensor recorded(const char* what, const Step& step, FunctionRef<void(const Tensor& writer, const Tensor& step)> put);

// A tensor under a tag; `make` is called where it is written.
Tensor record(const char* what, std::string_view tag, FunctionRef<Tensor()> make, const Step& step,
              std::string_view metadata);

std::string serialized_metadata(std::string_view plugin, std::string_view content, std::string_view display_name,
                                std::string_view description);

}  // namespace runnel::summary
