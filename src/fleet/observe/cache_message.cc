#include "fleet/observe/cache_message.h"

#include <cstring>
#include <vector>

namespace octavo::fleet {

std::optional<CacheMessage> receive_cache_message(zmq::socket_t& socket, bool& any) {
  std::vector<zmq::message_t> parts(1);
  any = socket.recv(parts.back(), zmq::recv_flags::dontwait).has_value();
  if (!any) return std::nullopt;
  while (parts.back().more() && parts.size() < 8) {
    parts.emplace_back();
    (void)socket.recv(parts.back());
  }
  for (zmq::message_t rest; parts.back().more() && socket.recv(rest) && rest.more();) continue;
  if (parts.size() == 4 && parts.front().empty()) parts.erase(parts.begin());
  if (parts.size() != 3 || parts[1].size() != sizeof(std::uint64_t)) return std::nullopt;
  std::uint64_t number;
  std::memcpy(&number, parts[1].data(), sizeof number);
  return CacheMessage{parts[0].to_string(), __builtin_bswap64(number), parts[2].to_string()};
}

}  // namespace octavo::fleet
