// Optional MPI transport. It is in a separate library, which is built only if MPI's headers are installed.
// So the program does not depend on MPI.
#pragma once

#include <memory>

#include "dist/transport.h"

namespace octavo {

// Opens the transport between all processes that mpirun started. Call it once per process. Errors:
// unsupported, the library or MPI is missing; unavailable, with MPI's message.
Result<std::unique_ptr<Transport>> open_mpi_transport();

// Function that the library exports. Returns a Transport that the caller owns, or null and the reason in
// `why`.
inline constexpr const char* kOpenMpiTransport = "octavo_open_mpi_transport";
using OpenMpiTransport = Transport* (*)(char* why, std::size_t why_size);

}  // namespace octavo
