# cmake -DBUILD=... -DSOURCE=... -DPYTHON=... -DCXX=... -P run.cmake
# Installs the library into a fresh folder and builds and runs a project that knows nothing but find_package(runnel).
set(work ${BUILD}/tests/install_consumer)
file(REMOVE_RECURSE ${work})
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
run(${PYTHON} ${SOURCE}/scripts/layering --installed ${work}/prefix/include)
# The public headers and no others.
include(${SOURCE}/cmake/public_headers.cmake)
file(GLOB_RECURSE installed RELATIVE ${work}/prefix/include ${work}/prefix/include/*)
list(SORT installed)
list(SORT RUNNEL_PUBLIC_HEADERS)
if(NOT installed STREQUAL RUNNEL_PUBLIC_HEADERS)
  message(FATAL_ERROR "installed: ${installed}\npublic: ${RUNNEL_PUBLIC_HEADERS}")
endif()
list(LENGTH installed count)
if(count GREATER 220)  # each is a promise to users: add one only if they need it
  message(FATAL_ERROR "${count} public headers")
endif()
foreach(order ASCENDING DESCENDING)  # both ways: a header that needs another must include it
  list(SORT installed ORDER ${order})
  list(TRANSFORM installed REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE includes)
  list(JOIN includes "" text)
  file(WRITE ${work}/all.cpp "${text}")
  run(${CXX} -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I${work}/prefix/include ${work}/all.cpp)
endforeach()
# Moved after the installation: nothing in it may point to where it was put first.
file(RENAME ${work}/prefix ${work}/moved)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install -B ${work}/build -G Ninja -DCMAKE_PREFIX_PATH=${work}/moved
  -DCMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
message(STATUS "the consumer says: ${output}")
run(${work}/moved/bin/runnel version)
file(REMOVE_RECURSE ${work})
