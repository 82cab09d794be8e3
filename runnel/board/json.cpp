#include "runnel/board/json.h"

#include <cmath>
#include <iterator>

#include "runnel/base/format.h"

namespace runnel::board {
namespace {

const char* name_of_no_number(double v) { return std::isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity"; }

template <class T>
void append_any(std::string& out, T v) {
  if (std::isfinite(v)) {
    fmt::format_to(std::back_inserter(out), "{}", v);
  } else {
    fmt::format_to(std::back_inserter(out), "\"{}\"", name_of_no_number(v));
  }
}

}  // namespace

Json json_number(double v) {
  if (!std::isfinite(v)) return name_of_no_number(v);
  return v;
}
Json json_number(float v) {
  if (!std::isfinite(v)) return name_of_no_number(v);
  return std::stod(fmt::format("{}", v));
}

void append_number(std::string& out, double v) { append_any(out, v); }
void append_number(std::string& out, float v) { append_any(out, v); }

std::string json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

void append_quoted(std::string& out, const std::string& text) { out += json_text(Json(text)); }

Response json_response(const Json& json) { return {.body = json_text(json) + "\n"}; }

}  // namespace runnel::board
