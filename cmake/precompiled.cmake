# What makes a clean build short: headers that nearly every file of a target includes, compiled once, and small files
# compiled several at a time, which instantiates what they share once. A file still includes what it uses and compiles
# alone; so it is in every tree that has ccache, which shares objects between trees only where no precompiled header,
# with its absolute paths, stands in between.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(precompile_default OFF)
else()
  set(precompile_default ON)
endif()
option(RUNNEL_PRECOMPILE "Precompile common headers" ${precompile_default})

# precompile(TARGET HEADERS...): REUSE_FROM OTHER instead of headers takes those of OTHER, which has the same flags.
function(precompile target)
  if(NOT RUNNEL_PRECOMPILE)
    return()
  endif()
  if("${ARGV1}" STREQUAL REUSE_FROM)
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# compile_together(TARGET N): its files N at a time; under a sanitizer, whose passes take more than twice as long over
# twice the code, a few.
function(compile_together target count)
  if(RUNNEL_SANITIZE)
    set(count 4)
  endif()
  if(RUNNEL_PRECOMPILE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
    # GCC takes the files for headers, whose types must not use anonymous namespaces.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
