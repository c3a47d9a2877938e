// Marks functions that run on the device and on the host. Both compilers can include this header.
#pragma once

#ifdef __CUDACC__
#define OCTAVO_HOST_DEVICE __host__ __device__
#else
#define OCTAVO_HOST_DEVICE
#endif
