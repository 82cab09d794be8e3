#pragma once

// What can be said to every class of Keras here, from the one declaration of its settings: for listings, and for
// languages with keyword arguments.

#include <string>
#include <vector>

#include "runnel/keras/config.h"

namespace runnel::keras {

struct Setting {
  std::string name;
  std::string type;  // "int", "float", "bool", "str", "list(int)", ..., "optional(int)", or what it describes: "Layer"
  Config default_value;  // as configurations write it; null where there is none
  std::string doc;
};
struct ClassSettings {
  std::string kind;  // "layer", "loss", "metric", "optimizer", "schedule", "initializer", "callback"
  std::string name;
  std::vector<Setting> settings;
};

// All of them, by kind and name.
RUNNEL_API const std::vector<ClassSettings>& all_class_settings();
// One or more of that name (MeanSquaredError is a loss and a metric); an Error if there is none.
RUNNEL_API std::vector<ClassSettings> class_settings(const std::string& name);

}  // namespace runnel::keras
