#include "runnel/ops/named_resources.h"

#include <map>
#include <mutex>
#include <tuple>

namespace runnel {
namespace {

struct NamedResources {
  std::mutex mutex;
  std::map<std::tuple<std::string, std::string, std::string>, std::shared_ptr<Object>> objects;
};

NamedResources& named_resources() {
  static auto* const all = new NamedResources;  // graphs that end with the program still ask for it
  return *all;
}

}  // namespace

std::shared_ptr<Object> named_resource(const char* kind, const std::string& container, const std::string& name,
                                       FunctionRef<std::shared_ptr<Object>()> make) {
  if (name.empty()) return make();
  NamedResources& all = named_resources();
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<Object>& object = all.objects[{kind, container, name}];
  if (!object) object = make();
  return object;
}

bool forget_resource(const Object* object) {
  NamedResources& all = named_resources();
  const std::lock_guard lock(all.mutex);
  return std::erase_if(all.objects, [&](const auto& entry) { return entry.second.get() == object; }) > 0;
}

}  // namespace runnel
