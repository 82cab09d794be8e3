#pragma once

#include <string>

#include "runnel/base/export.h"

namespace runnel::board {

// Who listens on a port of this machine: "process 812 (tensorboard)". Empty where that cannot be known, as with
// processes of other users.
RUNNEL_API std::string port_holder(int port);

}  // namespace runnel::board
