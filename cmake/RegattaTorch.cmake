# libtorch, and the one precompiled torch header that every T folder shares.
find_package(Torch REQUIRED)

# Where libtorch is, is this build's affair: RegattaConfig.cmake.in asks again on the machine that uses the libraries.
add_library(regatta_torch INTERFACE)
target_include_directories(regatta_torch SYSTEM INTERFACE "$<BUILD_INTERFACE:${TORCH_INCLUDE_DIRS}>")
target_link_libraries(regatta_torch INTERFACE "$<BUILD_INTERFACE:${TORCH_LIBRARIES}>")
regatta_export(regatta_torch torch)

file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/torch_pch.cc CONTENT "// Holds the precompiled torch/torch.h.\n")
add_library(regatta_torch_pch STATIC ${CMAKE_BINARY_DIR}/torch_pch.cc)
target_link_libraries(regatta_torch_pch PUBLIC regatta_torch)
target_precompile_headers(regatta_torch_pch PRIVATE <torch/torch.h>)

function(regatta_use_torch target)
  target_link_libraries(${target} PUBLIC regatta_torch)
  target_precompile_headers(${target} REUSE_FROM regatta_torch_pch)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")  # the header was compiled with -fPIC, not with an executable's -fPIE
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()
