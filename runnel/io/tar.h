#pragma once

#include <string>
#include <vector>

#include "runnel/base/env.h"
#include "runnel/base/export.h"

namespace runnel::io {

struct TarMember {
  std::string name;
  ByteSpan bytes;  // inside the archive
};

// The files of a tar archive (not compressed) that lies in memory, in its order. Folders, links and devices are passed
// over. `name` stands in errors (data_loss), which also give the offset.
RUNNEL_API std::vector<TarMember> tar_members(ByteSpan archive, const std::string& name);

}  // namespace runnel::io
