// Marks functions that run on a device as well as on the host. Nothing else, so that code for either compiler
// can include it.
#pragma once

#ifdef __CUDACC__
#define OCTAVO_HOST_DEVICE __host__ __device__
#else
#define OCTAVO_HOST_DEVICE
#endif
