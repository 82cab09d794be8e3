#pragma once

#include <string_view>
#include <vector>

namespace runnel::board {

// A file of web/, as it was when the program was built.
struct PageFile {
  std::string_view path;  // "/main.js"; "/" is index.html
  std::string_view type;
  std::string_view content;
};
const std::vector<PageFile>& page_files();  // made by cmake/embed_web.cmake

}  // namespace runnel::board
