# Compiler flags, ccache and mold, the sanitizers.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # a libtorch or gRPC outside the system is found after the installation too
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1")

# -fno-math-errno lets sqrt vectorise; -ffp-contract=off keeps results independent of -m flags.
add_compile_options(-Wall -Wextra -Wsuggest-override -Werror -fno-math-errno -ffp-contract=off
                    -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # A hint to vectorise that clang does not follow at -O1 is no fault.
  add_compile_options(-Wno-error=unknown-warning-option -Wno-inconsistent-missing-override -Wno-pass-failed)
  # What ABSL_GUARDED_BY and friends say is checked.
  add_compile_options(-Wthread-safety -Werror=thread-safety)
endif()

# The sanitizer builds use clang, so that one ASan build serves the unit tests and the fuzzers.
if(REGATTA_SANITIZE AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "REGATTA_SANITIZE needs clang: use a preset (asan, asan-torch, tsan) or -DCMAKE_CXX_COMPILER=clang++-14")
endif()
if(REGATTA_SANITIZE STREQUAL "address")
  set(regatta_sanitize -fsanitize=address,undefined -fno-sanitize-recover=undefined)
  add_compile_options(${regatta_sanitize} -O1 -g1)
  if(REGATTA_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
elseif(REGATTA_SANITIZE STREQUAL "thread")
  set(regatta_sanitize -fsanitize=thread)
  add_compile_options(${regatta_sanitize} -O1 -g1)
elseif(NOT REGATTA_SANITIZE STREQUAL "")
  message(FATAL_ERROR "REGATTA_SANITIZE must be address, thread or empty, not '${REGATTA_SANITIZE}'")
endif()
add_link_options(${regatta_sanitize})

find_program(REGATTA_CCACHE ccache)
if(REGATTA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${REGATTA_CCACHE})
endif()
find_program(REGATTA_MOLD mold)
if(REGATTA_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
