#include "http/public_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>

namespace octavo::http {
namespace {

struct Block {
  std::uint32_t first;
  int bits;  // number of leading bits that all addresses of the block share
};

constexpr std::uint32_t ipv4(std::uint32_t a, std::uint32_t b, std::uint32_t c = 0) {
  return a << 24 | b << 16 | c << 8;
}

// The registry of special IPv4 addresses (RFC 6890), multicast and reserved addresses.
constexpr Block kSpecial[] = {
    {ipv4(0, 0), 8},         {ipv4(10, 0), 8},     {ipv4(100, 64), 10},   {ipv4(127, 0), 8},
    {ipv4(169, 254), 16},    {ipv4(172, 16), 12},  {ipv4(192, 0, 0), 24}, {ipv4(192, 0, 2), 24},
    {ipv4(192, 88, 99), 24}, {ipv4(192, 168), 16}, {ipv4(198, 18), 15},   {ipv4(198, 51, 100), 24},
    {ipv4(203, 0, 113), 24}, {ipv4(224, 0), 4},    {ipv4(240, 0), 4},
};

bool is_public(std::uint32_t address) {
  return std::ranges::none_of(
      kSpecial, [&](const Block& block) { return (address ^ block.first) >> (32 - block.bits) == 0; });
}

bool begins_with(const in6_addr& address, std::initializer_list<std::uint8_t> bytes) {
  return std::ranges::equal(bytes, std::span(address.s6_addr).first(bytes.size()));
}

bool is_public(const in6_addr& address) {
  const auto* bytes = static_cast<const std::uint8_t*>(address.s6_addr);
  const std::uint32_t last = std::uint32_t{bytes[12]} << 24 | std::uint32_t{bytes[13]} << 16 |
                             std::uint32_t{bytes[14]} << 8 | bytes[15];
  // Mapped IPv4 addresses, and those that a gateway translates (NAT64).
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&address);
  if (mapped || begins_with(address, {0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0})) return is_public(last);
  if ((bytes[0] & 0xe0) != 0x20) return false;  // only 2000::/3 is in use on the internet
  const bool special = (begins_with(address, {0x20, 0x01}) && bytes[2] < 2) ||   // 2001::/23, such as Teredo
                       begins_with(address, {0x20, 0x01, 0x0d, 0xb8}) ||         // documentation
                       begins_with(address, {0x20, 0x02}) ||                     // 6to4
                       (begins_with(address, {0x3f, 0xff}) && bytes[2] < 0x10);  // documentation
  return !special;
}

}  // namespace

bool is_public(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    return is_public(ntohl(in.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 in{};
  std::memcpy(&in, &address, sizeof in);
  return is_public(in.sin6_addr);
}

}  // namespace octavo::http
