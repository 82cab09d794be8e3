#include "runnel/ops/named_resources.h"

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace runnel {
namespace {

struct ResourceName {
  const ResourceSpace* space;  // null: the program's
  std::string kind, container, name, node;
  auto operator<=>(const ResourceName&) const = default;
};

struct NamedResources {
  std::mutex mutex;
  std::map<ResourceName, std::shared_ptr<Object>> objects;

  // Their objects end outside of the lock: a writer closes its file then.
  template <class Which>
  std::vector<std::shared_ptr<Object>> take(const Which& which) {
    std::vector<std::shared_ptr<Object>> taken;
    const std::lock_guard lock(mutex);
    for (auto it = objects.begin(); it != objects.end();) {
      if (!which(*it)) {
        ++it;
        continue;
      }
      taken.push_back(std::move(it->second));
      it = objects.erase(it);
    }
    return taken;
  }
};

NamedResources& named_resources() {
  static auto* const all = new NamedResources;  // graphs that end with the program still ask for it
  return *all;
}

}  // namespace

ResourceSpace::~ResourceSpace() {
  named_resources().take([this](const auto& entry) { return entry.first.space == this; });
}

std::shared_ptr<Object> named_resource(const char* kind, const ResourceHome& home, const std::string& container,
                                       const std::string& name, FunctionRef<std::shared_ptr<Object>()> make) {
  if (name.empty() && !home.space) return make();
  NamedResources& all = named_resources();
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<Object>& object =
      all.objects[{home.space.get(), kind, container, name, name.empty() ? home.node : std::string()}];
  if (!object) object = make();
  return object;
}

bool forget_resource(const Object* object) {
  return !named_resources().take([&](const auto& entry) { return entry.second.get() == object; }).empty();
}

}  // namespace runnel
