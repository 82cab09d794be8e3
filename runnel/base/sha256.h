#pragma once

#include <memory>
#include <string>

#include "runnel/base/env.h"
#include "runnel/base/export.h"

namespace runnel {

class RUNNEL_API Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(ByteSpan bytes);
  std::string hex();  // 64 lower-case digits; ends the computation, call once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

RUNNEL_API std::string sha256_hex(ByteSpan bytes);
RUNNEL_API std::string sha256_file(Env& env, const std::string& path);

}  // namespace runnel
