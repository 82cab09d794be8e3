#include "runnel/base/source_site.h"

namespace runnel {

std::string SourceSite::at() const {
  if (!known()) return "";
  return " (at " + std::string(file) + ":" + std::to_string(line) + ")";
}

}  // namespace runnel
