// Free TCP ports for tests.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/check.h"
#include "dist/tcp_transport.h"

namespace octavo {

// Returns a port of 127.0.0.1 on which no program listens.
inline int free_port() {
  const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  CHECK(bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), length) == 0);
  CHECK(getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  return ntohs(address.sin_port);
}

}  // namespace octavo
