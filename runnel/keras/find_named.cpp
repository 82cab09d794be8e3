#include "runnel/keras/find_named.h"

#include "runnel/base/format.h"

namespace runnel::keras {

Description read_description(const char* what, const Config& description) {
  if (description.is_text()) return {description.as_text(), Config::Map()};
  if (!description.is_map() || !description.find("class_name")) {
    throw invalid_argument("[keras] {} is described by its name or by {{\"class_name\": ..., \"config\": ...}}, got {}",
                           what, description.to_json());
  }
  Config::Map settings;
  const Config* given = description.find("config");
  if (given && !given->is_null()) {
    for (const auto& [key, value] : given->entries()) {
      if (!value.is_null()) settings.emplace_back(key, value);
    }
  }
  return {description["class_name"].as_text(), std::move(settings)};
}

void unknown_description(const char* what, const std::string& name, const std::vector<std::string_view>& known) {
  throw make_error(Code::not_found, "[keras] there is no {} '{}'; there are {}", what, name, fmt::join(known, ", "));
}

}  // namespace runnel::keras
