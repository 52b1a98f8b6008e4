# libtorch, and the one precompiled torch header that every T folder shares.
# libtorch 2 makes an empty protobuf::libprotobuf if there is none: ours comes first.
find_package(Protobuf REQUIRED)
find_package(Torch REQUIRED)

# Where libtorch is, is this build's affair: RegattaConfig.cmake.in asks again on the machine that uses the libraries.
add_library(regatta_torch INTERFACE)
target_include_directories(regatta_torch SYSTEM INTERFACE "$<BUILD_INTERFACE:${TORCH_INCLUDE_DIRS}>")
target_link_libraries(regatta_torch INTERFACE "$<BUILD_INTERFACE:${TORCH_LIBRARIES}>")
regatta_export(regatta_torch torch)

# vector_before_torch.h says why: the precompiled header begins with it, as must who uses the installed libraries.
set(regatta_before_torch "")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(regatta_before_torch ${PROJECT_SOURCE_DIR}/cmake/vector_before_torch.h)
  install(FILES ${regatta_before_torch} DESTINATION include/regatta)
  target_compile_options(regatta_torch INTERFACE
    "$<INSTALL_INTERFACE:SHELL:-include $<INSTALL_PREFIX>/include/regatta/vector_before_torch.h>")
endif()

regatta_precompiled(torch_pch LIBS regatta_torch HEADERS ${regatta_before_torch} <torch/types.h> <torch/utils.h>)
if(REGATTA_SANITIZE)
  regatta_cold(regatta_torch_pch)
endif()

function(regatta_use_torch target)
  target_link_libraries(${target} PUBLIC regatta_torch)
  regatta_use_precompiled(${target} torch_pch)
endfunction()
