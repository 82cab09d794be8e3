#include <cstdint>
#include <string_view>

#include "tools/event_values.h"

// One value of a summary, as `runnel events` shows it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel;
  io::EventValue value;
  if (!io::parse_event_value({reinterpret_cast<const char*>(data), size}, &value)) return 0;
  for (const std::string_view plugin : {io::plugin_of(value), std::string_view("histograms")}) {
    volatile size_t sink = tools::description_text(tools::describe_event_value(value, plugin)).size();
    sink = sink + 1;
  }
  return 0;
}
