// Connects the ranks of a TCP transport to each other. TcpTransport::meet calls it.
#pragma once

#include <vector>

#include "dist/tcp_transport.h"

namespace octavo {

// Returns one socket per rank; the socket of this rank is empty. Returns the errors of TcpTransport::meet.
Result<std::vector<Socket>> meet_ranks(const TcpRanks& ranks);

}  // namespace octavo
