#pragma once

// Internal: entries and the header as the index keeps them.
#include <string>
#include <string_view>

#include "runnel/io/checkpoint_reader.h"

namespace runnel::io {

struct CheckpointHeader {
  int num_shards = 1;
};

// An Error (data_loss) that says what is wrong, not where.
RUNNEL_API CheckpointHeader parse_header(std::string_view bytes);
RUNNEL_API CheckpointEntry parse_entry(std::string_view key, std::string_view bytes);

RUNNEL_API std::string header_bytes(const CheckpointHeader& header);
RUNNEL_API std::string entry_bytes(const CheckpointEntry& entry);

}  // namespace runnel::io
