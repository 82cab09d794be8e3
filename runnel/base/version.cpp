#include "runnel/base/version.h"

namespace runnel {

const char* version() { return RUNNEL_VERSION; }

}  // namespace runnel
