#include "runnel/keras/policy.h"

#include <mutex>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"

namespace runnel::keras {
namespace {

struct GlobalPolicy {
  std::mutex mutex;
  Policy policy{"float32"};
};

GlobalPolicy& the_global_policy() {
  static GlobalPolicy global;
  return global;
}

}  // namespace

Policy::Policy(const std::string& name, SourceSite where) : name_(name) {
  if (name.empty()) return;
  variable_ = DType::float32;
  if (name == "mixed_float16") {
    compute_ = DType::float16;
  } else if (name == "mixed_bfloat16") {
    compute_ = DType::bfloat16;
  } else {
    try {
      variable_ = compute_ = dtype_from_name(name);
    } catch (const Error&) {
      throw at_line(
          invalid_argument("[keras] '{}' is no dtype policy: give mixed_float16, mixed_bfloat16 or a dtype", name),
          where);
    }
  }
}

Policy::Policy(DType dtype) {
  if (dtype == DType::invalid) return;
  name_ = dtype_name(dtype);
  variable_ = compute_ = dtype;
}

Policy Policy::from_config(const Config& config) {
  if (config.is_null()) return {};
  return config.is_map() ? Policy(config["config"]["name"].as_text()) : Policy(config.as_text());
}

namespace mixed_precision {

void set_global_policy(const Policy& policy, SourceSite where) {
  at_caller(where, [&] {
    const Policy wanted = policy.defined() ? policy : Policy("float32");
    if (!is_float(wanted.compute_dtype())) {
      throw invalid_argument("[keras] the global policy must be floating, got '{}'", wanted.name());
    }
    GlobalPolicy& global = the_global_policy();
    const std::lock_guard lock(global.mutex);
    global.policy = wanted;
  });
}

Policy global_policy() {
  GlobalPolicy& global = the_global_policy();
  const std::lock_guard lock(global.mutex);
  return global.policy;
}

}  // namespace mixed_precision
}  // namespace runnel::keras
