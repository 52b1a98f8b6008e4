# libtorch, and the one precompiled torch header that every T folder shares.
find_package(Torch REQUIRED)

add_library(regatta_torch INTERFACE)
target_include_directories(regatta_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(regatta_torch INTERFACE ${TORCH_LIBRARIES})

regatta_precompiled(torch_pch LIBS regatta_torch HEADERS <torch/torch.h>)

function(regatta_use_torch target)
  target_link_libraries(${target} PUBLIC regatta_torch)
  regatta_use_precompiled(${target} torch_pch)
endfunction()
