# Flags shared by every target of the project; consumers of the installed library get none of them.
add_library(runnel_flags INTERFACE)
target_compile_options(runnel_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
# Kernels: no implicit FMA (results must not depend on the compiler's mood), no errno from libm.
# Functions that pass vectors are called within their file only, so how they are passed is nobody's business.
set(RUNNEL_KERNEL_OPTIONS -ffp-contract=off -fno-math-errno -fno-trapping-math -Wno-psabi)
# Most code is compiled with -O2, kernels and parsers with -O3. The files of ops, many dtypes each, take of -O3 what
# their loops need: it compiles a quarter faster.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(RUNNEL_OPS_OPTIMISATION $<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>)

# The build type of the sanitizer presets: assertions stay on, stacks stay readable.
set(CMAKE_CXX_FLAGS_SANITIZED "-O1 -g1 -fno-omit-frame-pointer")
if(RUNNEL_SANITIZE)
  add_compile_options(-fsanitize=${RUNNEL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RUNNEL_SANITIZE})
endif()
# clang says where it did not vectorise; GCC is the compiler whose speed counts. A layer overrides one of several forms
# of `call` and hides the others on purpose.
target_compile_options(runnel_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed -Wno-overloaded-virtual>)
