#include "runnel/track/given_parts.h"

#include "runnel/base/format.h"

namespace runnel::train {

void GivenParts::require_all(const Trackable& node) {
  std::unordered_set<const Trackable*> met;
  require_all(node, "", met);
}

void GivenParts::require_all(const Trackable& node, const std::string& path,
                             std::unordered_set<const Trackable*>& met) {
  const auto* parts = dynamic_cast<const GivenParts*>(&node);
  if (!parts || !met.insert(&node).second) return;
  for (const std::string& name : parts->given) {
    const Trackable::Edge* edge = node.find_edge(name);
    if (!edge) {
      throw make_error(Code::failed_precondition,
                       "[Checkpoint] its part '{}{}' is gone, so nothing is saved: the part was given by its address "
                       "and has ended. Keep it as long as the checkpoint saves, give it as a std::shared_ptr, or set() "
                       "another part",
                       path, name);
    }
    require_all(*edge->object, path + name + "/", met);
  }
}

}  // namespace runnel::train
