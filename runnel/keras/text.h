#pragma once

#include <string>

#include "runnel/tensor/shape.h"

// Texts that tables and pictures of models share.
namespace runnel::keras {

std::string shape_tuple(const PartialShape& shape);  // as Python shows it: (None, 28, 28)
std::string xml_text(const std::string& text);       // with &, <, > and quotes escaped, without control characters

}  // namespace runnel::keras
