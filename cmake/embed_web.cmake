# cmake -DFOLDER=web -DOUT=page_files.cpp -P embed_web.cmake    writes the files of a folder as a C++ source: the page of
# the board is part of the library, so there is nothing to install beside it and nothing to find when it runs.
set(types html text/html css text/css js text/javascript svg image/svg+xml)
file(GLOB names RELATIVE ${FOLDER} ${FOLDER}/*.html ${FOLDER}/*.css ${FOLDER}/*.js ${FOLDER}/*.svg)
list(SORT names)
set(entries "")
foreach(name IN LISTS names)
  cmake_path(GET name EXTENSION LAST_ONLY extension)
  string(SUBSTRING "${extension}" 1 -1 extension)
  list(FIND types "${extension}" at)
  math(EXPR at "${at} + 1")
  list(GET types ${at} type)
  if(NOT type STREQUAL image/svg+xml)
    string(APPEND type "; charset=utf-8")
  endif()
  set(path "/${name}")
  if(name STREQUAL index.html)
    set(path "/")
  endif()
  file(READ ${FOLDER}/${name} content)
  string(APPEND entries "      {\"${path}\", \"${type}\", R\"runnel_web(${content})runnel_web\"},\n")
endforeach()
file(WRITE ${OUT} "// Made of web/ by cmake/embed_web.cmake.\n#include \"runnel/board/page.h\"\n
namespace runnel::board {\n
const std::vector<PageFile>& page_files() {
  static const auto* const files = new std::vector<PageFile>{
${entries}  };
  return *files;
}\n
}  // namespace runnel::board\n")
