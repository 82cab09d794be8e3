#pragma once

#include <string>

#include "runnel/keras/config.h"
#include "runnel/tensor/dtype.h"

namespace runnel::keras {

// The dtypes of a layer: of its weights and of its computation. "float32", "float64", "float16", "bfloat16": both;
// "mixed_float16", "mixed_bfloat16": weights in float32, computation in the short type. Empty: the global policy.
class RUNNEL_API Policy {
 public:
  Policy() = default;
  Policy(const char* name, SourceSite where = SourceSite::current())  // NOLINT: implicit
      : Policy(std::string(name), where) {}
  Policy(const std::string& name, SourceSite where = SourceSite::current());  // NOLINT
  Policy(DType dtype);                                                        // NOLINT

  bool defined() const { return variable_ != DType::invalid; }
  const std::string& name() const { return name_; }
  DType variable_dtype() const { return variable_; }
  DType compute_dtype() const { return compute_; }
  Config config() const { return name_; }
  static Policy from_config(const Config& config);

 private:
  std::string name_;
  DType variable_ = DType::invalid;
  DType compute_ = DType::invalid;
};

namespace mixed_precision {
// What layers made from now on use unless told otherwise; "float32" at the start.
RUNNEL_API void set_global_policy(const Policy& policy, SourceSite where = SourceSite::current());
RUNNEL_API Policy global_policy();
}  // namespace mixed_precision

}  // namespace runnel::keras
