#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"

namespace runnel::io {

// A checkpoint is known by its prefix, the path that its files begin with.
RUNNEL_API std::string checkpoint_index_path(const std::string& prefix);  // "P.index"
RUNNEL_API std::string checkpoint_shard_path(const std::string& prefix, int shard,
                                             int shards);                        // P.data-00000-of-00001
RUNNEL_API bool is_same_checkpoint(const std::string& a, const std::string& b);  // by other paths, perhaps
RUNNEL_API bool checkpoint_exists(const std::string& prefix, Env& env = Env::posix());
// The index goes first, so that what is left at any moment is a whole checkpoint or none. A checkpoint that is not
// there is no error.
RUNNEL_API void remove_checkpoint(const std::string& prefix, Env& env = Env::posix());
// The shards beside it, also those that its index does not name.
RUNNEL_API std::vector<std::string> checkpoint_shards_on_disk(const std::string& prefix, Env& env = Env::posix());

// Elements as files number them: TensorFlow's DataType. runnel::DType has the same numbers; some have no DType.
inline constexpr int kCheckpointString = 7, kCheckpointVariant = 21;
RUNNEL_API size_t checkpoint_dtype_size(int dtype);       // bytes of one element; 0: has none (strings), or unknown
RUNNEL_API std::string checkpoint_dtype_name(int dtype);  // "float32"

}  // namespace runnel::io
