#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runnel/io/event.h"

namespace runnel::tools {

// What a value holds, for people and as JSON: a scalar as a number, of others what there is to say in a line (buckets
// and range of a histogram, size and number of images, the beginning of texts). `plugin` is the one that shows the
// tag; values of TensorFlow 1 are described as TensorBoard shows them. What cannot be read is {"error": ...}.
nlohmann::ordered_json describe_event_value(const io::EventValue& value, std::string_view plugin);
// The same of bytes that an event holds beside summaries: a graph, a session's log.
nlohmann::ordered_json describe_event_bytes(std::string_view bytes);

// A description in a line of text.
std::string description_text(const nlohmann::ordered_json& description);

}  // namespace runnel::tools
