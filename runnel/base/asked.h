#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "runnel/base/source_site.h"

namespace runnel {

// A name or a place in brackets behind an object, logs["loss"] or logs[0], with the line that asks: errors name it.
struct AskedName {
  template <std::convertible_to<std::string_view> T>
  AskedName(const T& name, SourceSite where = SourceSite::current()) : name(name), where(where) {}  // NOLINT: implicit
  std::string_view name;
  SourceSite where;
};
struct AskedPlace {
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  AskedPlace(I i, SourceSite where = SourceSite::current())  // NOLINT: implicit
      : place(std::in_range<int64_t>(i) ? static_cast<int64_t>(i) : std::numeric_limits<int64_t>::max()),
        where(where) {}
  int64_t place;
  SourceSite where;
};

}  // namespace runnel
