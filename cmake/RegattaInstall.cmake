# cmake --install: the programs, the libraries, the headers as they lie in src/, and lib/cmake/Regatta, with which another
# project says find_package(Regatta) and links Regatta::regatta. The prefix may be moved afterwards.
include(CMakePackageConfigHelpers)

# All that src/regatta.h and src/regatta_fluid.h offer; without libtorch, the Fleet and the data alone.
add_library(regatta_all INTERFACE)
target_compile_features(regatta_all INTERFACE cxx_std_20)
if(REGATTA_WITH_TORCH)
  target_link_libraries(regatta_all INTERFACE regatta_worker regatta_exec)
else()
  target_link_libraries(regatta_all INTERFACE regatta_fleet regatta_data)
endif()
if(REGATTA_SANITIZE)  # a program that links the libraries needs what they call
  target_compile_options(regatta_all INTERFACE ${regatta_sanitize})
  target_link_options(regatta_all INTERFACE ${regatta_sanitize})
endif()
regatta_export(regatta_all regatta)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/ DESTINATION include/regatta
        FILES_MATCHING PATTERN "*.h" PATTERN "*.inc"
        PATTERN "testing" EXCLUDE PATTERN "test_*" EXCLUDE)
install(EXPORT RegattaTargets NAMESPACE Regatta:: DESTINATION lib/cmake/Regatta)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/RegattaConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/RegattaConfig.cmake INSTALL_DESTINATION lib/cmake/Regatta)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/RegattaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/RegattaConfig.cmake ${PROJECT_BINARY_DIR}/RegattaConfigVersion.cmake
        DESTINATION lib/cmake/Regatta)
