#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runnel/base/export.h"

namespace runnel::board {

using HParamsValue = std::variant<std::monostate, double, std::string, bool>;

// What the content of one value of the plugin hparams says: an experiment, the start of a session, or its end.
struct HParamsContent {
  struct Named {
    std::string name;   // of a metric: its tag
    std::string group;  // of a metric: the folder below that of the session
    std::string display_name;
    std::string description;
  };
  bool is_experiment = false, is_start = false, is_end = false;
  std::vector<Named> hparams, metrics;         // of an experiment
  std::map<std::string, HParamsValue> values;  // of a start
  std::string group;                           // of a start: sessions of one group are repetitions
  double start = 0, end = 0;                   // seconds since 1970
  int64_t status = 0;                          // of an end: 1 success, 2 failure, 3 running
};

// Nothing where the bytes are no such message.
RUNNEL_API std::optional<HParamsContent> parse_hparams(std::string_view content);

}  // namespace runnel::board
