#pragma once

// Internal: a font of lines, so that text is smooth in any size. It has the printable characters of ASCII; others are
// drawn as an empty box.
#include <string_view>
#include <vector>

#include "runnel/io/canvas.h"

namespace runnel::io {

// The lines of a text whose left end on the baseline is (0, 0), for a font size of 1, curves in small steps.
std::vector<std::vector<CanvasPoint>> text_strokes(std::string_view text);
// How far the text goes to the right.
double text_advance(std::string_view text);

}  // namespace runnel::io
