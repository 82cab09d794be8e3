#pragma once

#include <string>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {

// While it lives, the names of the nodes that this thread adds to a graph, and the tags of its summaries, begin with
// "name/"; scopes nest. In a graph a scope that is opened again is another one, with a number.
//   const auto scope = name_scope("encoder");
class RUNNEL_API NameScope {
 public:
  explicit NameScope(const std::string& name, SourceSite where = SourceSite::current());
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  const std::string& path() const { return path_; }  // with the scopes around it

 private:
  std::string path_;
  ContextScope<&ThreadContext::name_scope> scope_;
};
// A scope that has the same name each time it is opened, also within one graph: that of a layer.
class RUNNEL_API ReopenedScope {
 public:
  explicit ReopenedScope(const std::string& name);
  ReopenedScope(const ReopenedScope&) = delete;
  ReopenedScope& operator=(const ReopenedScope&) = delete;

 private:
  std::string path_;
  ContextScope<&ThreadContext::name_scope> scope_;
};
[[nodiscard]] inline NameScope name_scope(const std::string& name, SourceSite where = SourceSite::current()) {
  return NameScope(name, where);
}

// The scopes that are open, "outer/inner"; empty where there is none.
RUNNEL_API const std::string& current_name_scope();
RUNNEL_API std::string in_name_scope(const std::string& name);  // the name with them before it

}  // namespace runnel
