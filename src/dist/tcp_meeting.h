// Rendezvous of ranks before they connect to each other: see tcp_transport.h.
#pragma once

#include <vector>

#include "dist/tcp_transport.h"

namespace octavo {

// One socket per rank, none for this one. Errors: see TcpTransport::meet.
Result<std::vector<Socket>> meet_ranks(const TcpRanks& ranks);

}  // namespace octavo
