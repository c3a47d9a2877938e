// Optional MPI transport. It is a separate library, built if MPI's headers are installed, so that the program
// does not depend on MPI.
#pragma once

#include <memory>

#include "dist/transport.h"

namespace octavo {

// The transport of all processes that mpirun started. Call it once per process. Errors: unsupported if the
// library or MPI is missing; unavailable with MPI's message.
Result<std::unique_ptr<Transport>> open_mpi_transport();

// The library's export: a Transport that the caller owns, or null and an error message.
inline constexpr const char* kOpenMpiTransport = "octavo_open_mpi_transport";
using OpenMpiTransport = Transport* (*)(char* why, std::size_t why_size);

}  // namespace octavo
