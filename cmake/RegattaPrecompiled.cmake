# Precompiled headers, which halve the time of a cold build: one for the torch-free libraries, one for their tests,
# one for the folders that use gRPC (src/wire makes it), one for those that use libtorch (RegattaTorch). They hold
# nothing of our own.
set(regatta_pch_headers
    <algorithm> <chrono> <filesystem> <functional> <map> <memory> <set> <string> <thread> <vector>
    <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h>)

# regatta_precompiled(<name> LIBS external… HEADERS header…): a target to reuse the header from.
function(regatta_precompiled name)
  cmake_parse_arguments(ARG "" "" "LIBS;HEADERS" ${ARGN})
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cc CONTENT "// Holds a precompiled header.\n")
  add_library(regatta_${name} STATIC ${CMAKE_BINARY_DIR}/${name}.cc)
  target_link_libraries(regatta_${name} PUBLIC ${ARG_LIBS})
  target_precompile_headers(regatta_${name} PRIVATE ${ARG_HEADERS})
endfunction()

set(regatta_pch_libraries absl::status absl::statusor absl::strings absl::str_format)
regatta_precompiled(pch LIBS ${regatta_pch_libraries} HEADERS ${regatta_pch_headers})
# Clang wants a header that was optimised as the file is.
set(regatta_cold_pch pch)
if(REGATTA_SANITIZE)
  set(regatta_cold_pch cold_pch)
  regatta_precompiled(cold_pch LIBS ${regatta_pch_libraries} HEADERS ${regatta_pch_headers})
  regatta_cold(regatta_cold_pch)
endif()
if(REGATTA_TESTS)
  regatta_precompiled(test_pch LIBS ${regatta_pch_libraries} GTest::gmock GTest::gtest
                      HEADERS ${regatta_pch_headers} <gmock/gmock.h> <gtest/gtest.h>)
  regatta_cold(regatta_test_pch)
endif()

# The header of regatta_<pch> for `target`. It was compiled with -fPIC, not with an executable's -fPIE. GCC 12 sees
# faults in its own std::string, and forgets that a precompiled header is the system's and not to be judged.
function(regatta_use_precompiled target pch)
  target_precompile_headers(${target} REUSE_FROM regatta_${pch})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()
