#pragma once

#include <cstddef>

#include "runnel/base/export.h"

namespace runnel {

// Is there room for another call on the stack of this thread? What calls itself as deep as the user's program says asks
// before it goes deeper, and throws an Error where the program would crash. True on a stack that is not the thread's
// own (a coroutine library's): nothing is known of it.
RUNNEL_API bool stack_has_room();

}  // namespace runnel
