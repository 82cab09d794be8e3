#pragma once

// Internal: how the board writes JSON.
#include <nlohmann/json.hpp>
#include <string>

#include "runnel/board/request.h"

namespace runnel::board {

using Json = nlohmann::ordered_json;

// Numbers that JSON does not have are the texts "NaN", "Infinity" and "-Infinity", as in TensorBoard.
Json json_number(double v);
Json json_number(float v);  // as short as a float allows: 0.1, not 0.10000000149011612
// The same, appended to text that is being written: for long lists.
void append_number(std::string& out, double v);
void append_number(std::string& out, float v);
// A text from a file; what is no UTF-8 is replaced.
RUNNEL_API std::string json_text(const Json& json);
void append_quoted(std::string& out, const std::string& text);

Response json_response(const Json& json);

}  // namespace runnel::board
