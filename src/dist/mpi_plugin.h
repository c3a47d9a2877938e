// MPI, where it is installed: its transport is a library beside this program, built where MPI's headers are,
// so that the program itself needs none.
#pragma once

#include <memory>

#include "dist/transport.h"

namespace octavo {

// The transport of all processes that mpirun has started. Once in a process. Errors: unsupported where the
// library or MPI is not there; unavailable, what MPI says.
Result<std::unique_ptr<Transport>> open_mpi_transport();

// What the library exports: a Transport that belongs to the caller, or null and why.
inline constexpr const char* kOpenMpiTransport = "octavo_open_mpi_transport";
using OpenMpiTransport = Transport* (*)(char* why, std::size_t why_size);

}  // namespace octavo
