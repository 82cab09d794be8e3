#pragma once

#include <cstdint>
#include <string_view>

namespace runnel {

// Hashes of strings that files and models rely on: the same on every machine, and TensorFlow's.
uint64_t farm_fingerprint64(std::string_view text);                        // FarmHash Fingerprint64
uint64_t murmur64(std::string_view text, uint64_t seed);                   // MurmurHash64A
uint64_t sip_hash24(std::string_view text, uint64_t key0, uint64_t key1);  // SipHash-2-4, for keys that are secret

}  // namespace runnel
