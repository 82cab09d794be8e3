// `runnel keras`: layers, losses, metrics, optimizers, callbacks, datasets, ... with their settings.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "runnel/base/format.h"
#include "runnel/keras/settings.h"
#include "tools/commands.h"

namespace runnel::tools {
namespace {

void print_class(const keras::ClassSettings& c) {
  fmt::print("{} ({})\n", c.name, c.kind);
  for (const keras::Setting& s : c.settings) {
    const std::string value = s.default_value.is_null() ? "" : " = " + s.default_value.to_json();
    fmt::print("  {:<26} {}{}{}\n", s.name, s.type, value, s.doc.empty() ? "" : ": " + s.doc);
  }
}

nlohmann::ordered_json class_to_json(const keras::ClassSettings& c) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::array();
  for (const keras::Setting& s : c.settings) {
    settings.push_back({{"name", s.name},
                        {"type", s.type},
                        {"default", nlohmann::ordered_json::parse(s.default_value.to_json())},
                        {"doc", s.doc}});
  }
  return {{"kind", c.kind}, {"name", c.name}, {"settings", std::move(settings)}};
}

}  // namespace

void add_keras(CLI::App& app) {
  struct Arguments {
    std::string name;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("keras", "List classes of Keras, methods of models and datasets, or the settings of one");
  command->add_option("name", arguments->name, "One of them, such as Dense or Model.fit")->type_name("NAME");
  command->add_flag("--json", arguments->json, "Print a JSON list with all settings");
  command->callback([arguments] {
    const std::vector<keras::ClassSettings> list =
        arguments->name.empty() ? keras::all_class_settings() : keras::class_settings(arguments->name);
    if (arguments->json) {
      nlohmann::ordered_json all = nlohmann::ordered_json::array();
      for (const keras::ClassSettings& c : list) all.push_back(class_to_json(c));
      fmt::print("{}\n", all.dump(1));
      return;
    }
    for (const keras::ClassSettings& c : list) {
      if (arguments->name.empty()) {
        fmt::print("{:<12} {}\n", c.kind, c.name);
      } else {
        print_class(c);
      }
    }
  });
}

}  // namespace runnel::tools
