#pragma once

// Tar archives written by hand.
#include <cstdint>
#include <cstdio>
#include <string>

namespace runnel::test {

// A header and the data, filled up to whole blocks of 512 bytes.
inline std::string tar_member(const std::string& name, const std::string& data, char type = '0') {
  std::string header(512, '\0');
  auto put = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  char size[13];
  std::snprintf(size, sizeof size, "%011o", static_cast<unsigned>(data.size()));
  put(0, name);
  put(100, "0000644");
  put(124, size);
  header[156] = type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  put(148, "        ");
  unsigned sum = 0;
  for (char c : header) sum += static_cast<uint8_t>(c);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  put(148, std::string(text) + '\0');
  return header + data + std::string((512 - data.size() % 512) % 512, '\0');
}
inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace runnel::test
