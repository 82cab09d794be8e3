#include <cctype>
#include <map>
#include <mutex>
#include <typeinfo>

#include "runnel/base/format.h"
#include "runnel/keras/layer.h"
#include "runnel/keras/layers/register.h"
#include "runnel/op/composed.h"

namespace runnel::keras {
namespace {

struct LayerNames {
  std::mutex mutex;
  std::map<std::string, int> used;
};
LayerNames& layer_names() {
  static LayerNames names;
  return names;
}

void ensure_own_layers() {
  static std::once_flag once;
  std::call_once(once, register_layers);
}

}  // namespace

void clear_session() {
  LayerNames& names = layer_names();
  const std::lock_guard lock(names.mutex);
  names.used.clear();
}

std::string unique_name(const std::string& kind, int first) {
  LayerNames& names = layer_names();
  const std::lock_guard lock(names.mutex);
  const int n = first + names.used[kind]++;
  return n == 0 ? kind : fmt::format("{}_{}", kind, n);
}

// An underscore before a capital that follows a small letter or is followed by one: "BatchNormalization",
// "LSTMCell" -> "lstm_cell"; digits stay with what is before them.
std::string to_snake_case(const std::string& class_name) {
  std::string out;
  const auto upper = [&](size_t i) { return std::isupper(static_cast<unsigned char>(class_name[i])) != 0; };
  const auto lower = [&](size_t i) { return std::islower(static_cast<unsigned char>(class_name[i])) != 0; };
  for (size_t i = 0; i < class_name.size(); ++i) {
    const bool word_begins =
        i > 0 && upper(i) && (lower(i - 1) || (i + 1 < class_name.size() && lower(i + 1) && class_name[i - 1] != '_'));
    if (word_begins) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(class_name[i])));
  }
  return out;
}

LayerPtr layer_from_config(const Config& config, SourceSite where) {
  return composed(where, [&]() -> LayerPtr {
    ensure_own_layers();
    const std::string& class_name = config["class_name"].as_text();
    if (LayerPtr layer = SerializableObjects::make<Layer>(class_name, config["config"])) return layer;
    throw make_error(Code::not_found,
                     "[keras] no layer class '{}' is known: a layer of your own needs "
                     "register_keras_serializable<...>() before",
                     class_name);
  });
}

Config layer_to_config(const Layer& layer) {
  ensure_own_layers();
  return Config::Map{{"class_name", serialized_name(typeid(layer), layer.class_name())},
                     {"config", layer.get_config()}};
}

}  // namespace runnel::keras
