// How ranks find each other before they are connected: see tcp_transport.h.
#pragma once

#include <vector>

#include "dist/tcp_transport.h"

namespace octavo {

// A socket to each rank, none to this one. Errors: see TcpTransport::meet.
Result<std::vector<Socket>> meet_ranks(const TcpRanks& ranks);

}  // namespace octavo
