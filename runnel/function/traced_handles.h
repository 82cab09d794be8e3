#pragma once

// Internal: the handles that traced blocks change, and those that have no value after one.
#include <string>

#include "runnel/function/traced_loop.h"

namespace runnel::traced_blocks {

// Gives a handle of the program another value without a word to the log.
void rebind(Tensor* handle, const Ref<TensorImpl>& impl);
bool has_value(const Ref<TensorImpl>& impl);
// Variables and tables that a block makes live on; they are no values of the graph.
bool is_lost_after_block(const Ref<TensorImpl>& impl);
// Behind a handle that may have no value when the program gets here: using it in the trace is an Error that says `why`.
// After the trace the handle is as it was before it was filled: a cache can be filled again.
Tensor no_value(DType dtype, std::string why);
[[noreturn]] void left_early(const char* what, const SourceSite& where);

}  // namespace runnel::traced_blocks
