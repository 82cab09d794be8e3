# Every third-party package, found once for the whole project (scripts/packages lists where they come from).
find_package(Threads REQUIRED)
# Debian's dnnl package config demands OpenCL, which the CPU engine does not need: find the library itself.
find_library(RUNNEL_DNNL dnnl REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(OpenSSL REQUIRED)
find_package(CURL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
