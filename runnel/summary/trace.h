#pragma once

// The graphs of the functions that run, and a profile of that, for TensorBoard: tf.summary.trace_on and its like.
// docs/profiling.md
#include <string>
#include <string_view>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"
#include "runnel/summary/writer.h"

namespace runnel::summary {

// From now on, on all threads: the graphs of functions that are called, and with `profiler` a profile too (an Error
// where one is being recorded already). `profiler_outdir` is the folder for it. While a trace is on, and inside of a
// function, a warning is all that happens.
RUNNEL_API void trace_on(bool graph = true, bool profiler = false, const std::string& profiler_outdir = "",
                         SourceSite where = SourceSite::current());

// Ends the trace. The graphs go to the writer of the thread, as the summary `name`, and the profile to its folder,
// which must be given here or to trace_on. An Error where no trace is on, or there is a writer and no step: the trace
// stays on then. Inside of a function a warning is all that happens.
RUNNEL_API void trace_export(std::string_view name, const Step& step = {}, const std::string& profiler_outdir = "",
                             SourceSite where = SourceSite::current());

// Ends the trace and forgets what it has; nothing where none is on.
RUNNEL_API void trace_off();

}  // namespace runnel::summary
