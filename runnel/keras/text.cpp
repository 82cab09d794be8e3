#include "runnel/keras/text.h"

namespace runnel::keras {

std::string shape_tuple(const PartialShape& shape) {
  if (!shape.has_rank()) return "unknown";
  std::string text = "(";
  for (int i = 0; i < shape.rank(); ++i) {
    text += (i == 0 ? "" : ", ") + (shape[i] == kUnknownDim ? std::string("None") : std::to_string(shape[i]));
  }
  return text + (shape.rank() == 1 ? ",)" : ")");
}

std::string xml_text(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace runnel::keras
