#pragma once

// Internal: the datasets that can be fetched by name.
#include <vector>

#include "runnel/io/datasets.h"

namespace runnel::io {

const std::vector<DatasetSpec>& dataset_table();

}  // namespace runnel::io
