# `cmake --install` puts down the shared library, the public headers, the program and what find_package(runnel) reads.
include(CMakePackageConfigHelpers)
include(cmake/public_headers.cmake)

install(TARGETS runnel EXPORT runnelTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS runnel_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

foreach(header IN LISTS RUNNEL_PUBLIC_HEADERS)
  cmake_path(GET header PARENT_PATH directory)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${directory})
endforeach()

# The library needs no package of its users: its own are linked privately and its headers name none. So the exported
# targets are the whole configuration.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/runnel)
install(EXPORT runnelTargets NAMESPACE runnel:: DESTINATION ${package_dir} FILE runnelConfig.cmake)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/runnelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/runnelConfigVersion.cmake DESTINATION ${package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
