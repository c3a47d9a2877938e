#include "http/peer_socket.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <utility>

namespace octavo::http {

void notice_lost_peer(int socket) {
  constexpr std::pair<int, int> kOptions[] = {{TCP_KEEPIDLE, 15}, {TCP_KEEPINTVL, 5}, {TCP_KEEPCNT, 3}};
  constexpr int kOn = 1, kUnacknowledgedMs = 60'000;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn);
  for (const auto& [option, value] : kOptions)
    ::setsockopt(socket, IPPROTO_TCP, option, &value, sizeof value);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMs, sizeof kUnacknowledgedMs);
}

int unacknowledged_bytes(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 ? bytes : -1;
}

bool has_reached_peer(int socket) { return unacknowledged_bytes(socket) == 0; }

}  // namespace octavo::http
