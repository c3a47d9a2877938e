// Marks functions that run on a device and on the host. Code for either compiler can include this header.
#pragma once

#ifdef __CUDACC__
#define OCTAVO_HOST_DEVICE __host__ __device__
#else
#define OCTAVO_HOST_DEVICE
#endif
