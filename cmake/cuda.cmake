# CUDA for kernels/cuda: a system's toolkit, or the one that tools/install.sh cuda puts into .cuda.
if(EXISTS ${CMAKE_SOURCE_DIR}/.cuda/bin/nvcc)
  set(CMAKE_CUDA_COMPILER ${CMAKE_SOURCE_DIR}/.cuda/bin/nvcc)
elseif(EXISTS /usr/local/cuda/bin/nvcc)
  set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
endif()
# Machine code for Ampere, Ada, Hopper and Blackwell, and PTX for what comes later. Architectures with an `a` have special
# instructions, and their code runs on no other architecture. Only those of Hopper are used (wgmma.h).
set(CMAKE_CUDA_ARCHITECTURES "80-real;86-real;89-real;90a-real;100-real;103-real;120-real;90-virtual"
    CACHE STRING "CUDA architectures")
# The runtime is part of the program: a machine needs a driver and no toolkit.
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR "the CUDA backend needs nvcc 13, this is ${CMAKE_CUDA_COMPILER_VERSION}")
endif()
# CMake 3.25 does not know these flags of nvcc.
foreach(kind STANDARD EXTENSION)
  if(NOT CMAKE_CUDA20_${kind}_COMPILE_OPTION)
    set(CMAKE_CUDA20_${kind}_COMPILE_OPTION -std=c++20)
  endif()
endforeach()
