#pragma once

// What can be said to every class of Keras here, to the methods of models and to datasets, from the one declaration of
// the settings: for listings, and for languages with keyword arguments.

#include <string>
#include <vector>

#include "runnel/keras/config.h"

namespace runnel::keras {

struct Setting {
  std::string name;
  // "int", "float", "bool", "str", "list(int)", "dict(int, float)", "optional(int)", or what it describes: "Layer"
  std::string type;
  Config default_value;  // as configurations write it; null where there is none
  std::string doc;
};
struct ClassSettings {
  // "layer", "loss", "metric", "optimizer", "schedule", "initializer", "regularizer", "constraint", "callback";
  // "method" for what a method is told, "dataset" for what a source of data is told.
  std::string kind;
  std::string name;  // "Dense", "Model.fit", "Dataset.map"
  std::vector<Setting> settings;
};

// All of them, by kind and name.
RUNNEL_API const std::vector<ClassSettings>& all_class_settings();
// One or more of that name (MeanSquaredError is a loss and a metric); an Error if there is none.
RUNNEL_API std::vector<ClassSettings> class_settings(const std::string& name);

}  // namespace runnel::keras
