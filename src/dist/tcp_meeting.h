// Connects the ranks of a TCP transport to each other: see tcp_transport.h.
#pragma once

#include <vector>

#include "dist/tcp_transport.h"

namespace octavo {

// Returns one socket per rank; it is empty for this rank. Errors: see TcpTransport::meet.
Result<std::vector<Socket>> meet_ranks(const TcpRanks& ranks);

}  // namespace octavo
