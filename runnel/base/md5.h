#pragma once

#include <string>

#include "runnel/base/env.h"
#include "runnel/base/export.h"

namespace runnel {

// 32 lower-case digits. Tells damaged files apart, not forged ones: where there is a choice, use SHA-256.
RUNNEL_API std::string md5_file(Env& env, const std::string& path);

}  // namespace runnel
