# Every third-party package, found once for the whole project (scripts/packages lists where they come from).
find_package(Threads REQUIRED)
# Debian's dnnl package config demands OpenCL, which the CPU engine does not need: find the library itself.
find_library(RUNNEL_DNNL dnnl REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
# oneDNN is built on GCC's OpenMP runtime, and we set that runtime's thread count; no code of ours uses OpenMP itself.
# So with any compiler this very library and its header are meant (clang's OpenMP is another one).
file(GLOB RUNNEL_GCC_DIRS /usr/lib/gcc/*/*)
find_library(RUNNEL_GOMP gomp REQUIRED PATHS ${RUNNEL_GCC_DIRS})
add_library(runnel_gomp INTERFACE)
target_link_libraries(runnel_gomp INTERFACE ${RUNNEL_GOMP})
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  cmake_path(GET RUNNEL_GOMP PARENT_PATH directory)
  target_compile_options(runnel_gomp INTERFACE -idirafter ${directory}/include)
endif()
find_package(OpenSSL REQUIRED)
find_package(CURL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Protobuf REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
