# One folder = one CMake target = one namespace regatta::<folder>.

# All programs, the benchmarks and the tests that no torch-free build runs; scripts/test builds it. The other tests are
# labelled unit: those of the torch-free folders.
add_custom_target(deliverables)

# Adds src/<folder> for every folder that exists.
function(regatta_folders)
  foreach(folder ${ARGN})
    if(EXISTS ${PROJECT_SOURCE_DIR}/src/${folder}/CMakeLists.txt)
      add_subdirectory(${PROJECT_SOURCE_DIR}/src/${folder} ${PROJECT_BINARY_DIR}/src/${folder})
    endif()
  endforeach()
endfunction()

# regatta_export(<target> <name>): installed as a library, and Regatta::<name> for projects that use it.
function(regatta_export target name)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT RegattaTargets ARCHIVE DESTINATION lib INCLUDES DESTINATION include/regatta)
endfunction()

# What no batch walks through, and tests, are compiled for a short build: CLI11 and JSON, and the sanitizers, take most
# of their time to optimise.
set(regatta_cold_options $<IF:$<CONFIG:Release>,-O1,-O0>)
function(regatta_cold target)
  target_compile_options(${target} PRIVATE ${regatta_cold_options})
endfunction()

# regatta_library(<folder> [TORCH | GRPC] [COLD | COLD_FILES file…] [DEPS folder…] [LIBS external…]
#                 [THREADS test…] [TEST_DEPS folder…])
# Sources: every *.cc below the folder but *_test.cc, *_fuzz.cc and *_main.cc. Each *_test.cc becomes a ctest of
# its own name (RegattaTests.cmake; THREADS names those that start threads, TEST_DEPS the folders that only tests use);
# each *_fuzz.cc a libFuzzer target in the ASan build. COLD: the folder is (regatta_cold); COLD_FILES: these of its
# files are.
function(regatta_library name)
  cmake_parse_arguments(ARG "TORCH;GRPC;COLD" "" "COLD_FILES;DEPS;LIBS;THREADS;TEST_DEPS" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|main)\\.cc$")
  set(deps ${ARG_DEPS})
  list(TRANSFORM deps PREPEND regatta_)
  if(sources)
    add_library(regatta_${name} STATIC ${sources})
    target_include_directories(regatta_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
    target_link_libraries(regatta_${name} PUBLIC ${deps} ${ARG_LIBS} Threads::Threads)
  else()
    add_library(regatta_${name} INTERFACE)
    target_include_directories(regatta_${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
    target_link_libraries(regatta_${name} INTERFACE ${deps} ${ARG_LIBS} Threads::Threads)
  endif()
  # Several files are compiled as one where that saves most: GCC instantiates much of libtorch, gRPC and CLI11 anew for
  # every file, and the sanitizers' builds are rarely edited.
  if(sources AND (ARG_COLD OR REGATTA_SANITIZE) AND NOT ARG_TORCH)
    set_target_properties(regatta_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  elseif(sources AND (ARG_TORCH OR ARG_GRPC))
    set_target_properties(regatta_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
  endif()
  if(ARG_COLD OR (REGATTA_SANITIZE AND (ARG_GRPC OR ARG_TORCH)))
    regatta_cold(regatta_${name})
  else()
    set_source_files_properties(${ARG_COLD_FILES} PROPERTIES COMPILE_OPTIONS ${regatta_cold_options}
                                SKIP_PRECOMPILE_HEADERS ON)  # clang wants one that was optimised as the file is
  endif()
  if(ARG_TORCH)
    regatta_use_torch(regatta_${name})
  elseif(sources AND ARG_GRPC)
    regatta_use_precompiled(regatta_${name} grpc_pch)
  elseif(sources AND ARG_COLD)
    regatta_use_precompiled(regatta_${name} ${regatta_cold_pch})
  elseif(sources)
    regatta_use_precompiled(regatta_${name} pch)
  endif()
  regatta_export(regatta_${name} ${name})
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(ARG_TORCH)
    regatta_tests(${name} TORCH DEPS ${ARG_TEST_DEPS} SOURCES ${tests})
  else()
    regatta_tests(${name} DEPS ${ARG_TEST_DEPS} THREADS ${ARG_THREADS} SOURCES ${tests})
  endif()
  set(fuzzers ${all})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  foreach(fuzzer ${fuzzers})
    regatta_fuzzer(${fuzzer} ${name})
  endforeach()
endfunction()

# A libFuzzer executable; its corpus is tests/fuzz/corpus/<name>.
function(regatta_fuzzer source name)
  if(NOT (REGATTA_SANITIZE STREQUAL "address" AND REGATTA_FUZZ))
    return()
  endif()
  get_filename_component(fuzzer ${source} NAME_WE)
  add_executable(${fuzzer} ${source})
  target_link_libraries(${fuzzer} PRIVATE regatta_${name})
  target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer,address,undefined)
  set_target_properties(${fuzzer} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()

# regatta_bench(<file>_bench.cc [PCH pch] DEPS folder…): an executable under build/bench.
function(regatta_bench source)
  cmake_parse_arguments(ARG "" "PCH" "DEPS" ${ARGN})
  get_filename_component(bench ${source} NAME_WE)
  set(deps ${ARG_DEPS})
  list(TRANSFORM deps PREPEND regatta_)
  add_executable(${bench} ${source})
  target_link_libraries(${bench} PRIVATE ${deps})
  target_include_directories(${bench} PRIVATE ${PROJECT_SOURCE_DIR})
  if(ARG_PCH)
    regatta_use_precompiled(${bench} ${ARG_PCH})
  endif()
  set_target_properties(${bench} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  add_dependencies(benchmarks ${bench})
endfunction()
