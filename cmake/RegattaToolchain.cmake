# Compiler flags, ccache and mold, the sanitizers.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1")

# -fno-math-errno lets sqrt vectorise; -ffp-contract=off keeps results independent of -m flags.
add_compile_options(-Wall -Wextra -Wsuggest-override -Werror -fno-math-errno -ffp-contract=off
                    -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wno-error=unknown-warning-option -Wno-inconsistent-missing-override)
endif()

if(REGATTA_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -O1 -g)
  add_link_options(-fsanitize=address,undefined)
elseif(REGATTA_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -O1 -g)
  add_link_options(-fsanitize=thread)
elseif(REGATTA_SANITIZE STREQUAL "fuzz")
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "REGATTA_SANITIZE=fuzz needs clang: -DCMAKE_CXX_COMPILER=clang++-14")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -O1 -g)
  add_link_options(-fsanitize=address,undefined)
elseif(NOT REGATTA_SANITIZE STREQUAL "")
  message(FATAL_ERROR "REGATTA_SANITIZE must be address, thread, fuzz or empty, not '${REGATTA_SANITIZE}'")
endif()

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
