#pragma once

#include "runnel/base/export.h"

namespace runnel {

RUNNEL_API const char* version();  // "0.1.0"

}  // namespace runnel
