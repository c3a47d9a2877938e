// Optional MPI transport. It is in a separate library, which is built only if MPI's headers are installed,
// so the program does not depend on MPI.
#pragma once

#include <memory>

#include "dist/transport.h"

namespace octavo {

// Opens the transport between all processes that mpirun started. Call it once per process. Returns an
// unsupported error if the library or MPI is missing, and an unavailable error with MPI's message if MPI
// fails.
Result<std::unique_ptr<Transport>> open_mpi_transport();

// Function that the library exports. It returns a Transport that the caller owns, or null after it has
// written the reason to `why`.
inline constexpr const char* kOpenMpiTransport = "octavo_open_mpi_transport";
using OpenMpiTransport = Transport* (*)(char* why, std::size_t why_size);

}  // namespace octavo
