#include "runnel/base/format.h"

namespace runnel {

std::string comma_separated(std::span<const int64_t> values) { return fmt::format("{}", fmt::join(values, ",")); }

}  // namespace runnel
