#include "runnel/graph/name_scope.h"

#include "runnel/base/format.h"
#include "runnel/graph/tracer.h"

namespace runnel {
namespace {

std::string opened_path(const std::string& name, const SourceSite& where) {
  if (name.empty() || name.front() == '/' || name.back() == '/') {
    throw invalid_argument("[name_scope] '{}' is no name of a scope: it must not be empty, nor begin or end with /{}",
                           name, where.at());
  }
  std::string path = in_name_scope(name);
  const Tracer* tracer = Tracer::current();
  return tracer ? tracer->graph()->unique_name(path) : path;
}

}  // namespace

NameScope::NameScope(const std::string& name, SourceSite where) : path_(opened_path(name, where)), scope_(&path_) {}

ReopenedScope::ReopenedScope(const std::string& name) : path_(in_name_scope(name)), scope_(&path_) {}

const std::string& current_name_scope() {
  static const std::string none;
  const std::string* open = thread_context().name_scope;
  return open ? *open : none;
}

std::string in_name_scope(const std::string& name) {
  const std::string& open = current_name_scope();
  if (open.empty()) return name;
  std::string path;
  path.reserve(open.size() + 1 + name.size());  // layers are called often
  path.append(open).append(1, '/').append(name);
  return path;
}

}  // namespace runnel
