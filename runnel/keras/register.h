#pragma once

namespace runnel {

class Registry;

namespace keras {

// The ops of layers; runnel.cpp calls it.
void register_sequences(Registry& r);

}  // namespace keras
}  // namespace runnel
