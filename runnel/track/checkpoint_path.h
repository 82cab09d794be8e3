#pragma once

// Internal.
#include <string>

#include "runnel/base/env.h"

namespace runnel::train {

// The folder of a SavedModel means the checkpoint in it.
RUNNEL_API std::string without_saved_model(const std::string& path, Env& env);

}  // namespace runnel::train
