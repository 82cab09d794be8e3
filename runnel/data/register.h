#pragma once

namespace runnel {

class Registry;

namespace data {

// The ops of pipelines; runnel.cpp calls it.
void register_data_iterators(Registry& r);

}  // namespace data
}  // namespace runnel
