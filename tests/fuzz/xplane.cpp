#include "runnel/io/xplane.h"

#include <cstdint>
#include <cstdlib>

#include "runnel/base/error.h"
#include "runnel/io/profile_report.h"

// An XSpace: an Error, or a recording that can be reported and that comes back from what we write of it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  try {
    const profile::Recording recording = io::parse_xspace({reinterpret_cast<const char*>(data), size}, "fuzz");
    const io::ProfileReport report = io::make_profile_report(recording);
    volatile size_t sink = io::profile_report_text(report).size() + io::profile_report_json(report).size();
    sink = sink + 1;
    const profile::Recording again = io::parse_xspace(io::xspace_bytes(recording), "again");
    if (again.events.size() != recording.events.size() || again.memory.size() != recording.memory.size()) std::abort();
  } catch (const Error& e) {
    if (e.code() == Code::internal) std::abort();
  }
  return 0;
}
