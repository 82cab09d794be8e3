# Headers that nearly every file of a target includes, compiled once: it takes a third off a clean build. A file still
# includes what it uses, so it also compiles without them; so builds every tree that has ccache, which shares objects
# between trees only where no precompiled header, with its absolute paths, stands in between.
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
