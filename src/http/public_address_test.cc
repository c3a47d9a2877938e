#include "http/public_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

namespace octavo::http {
namespace {

bool is_public_text(const std::string& text) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr&>(storage);
  sockaddr_in four{};
  sockaddr_in6 six{};
  four.sin_family = AF_INET;
  six.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1)
    std::memcpy(&storage, &four, sizeof four);
  else if (::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1)
    std::memcpy(&storage, &six, sizeof six);
  else
    ADD_FAILURE() << text;
  return is_public(address);
}

TEST(PublicAddress, HostsOnTheInternet) {
  for (const char* text : {"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1",
                           "192.0.1.1", "192.169.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255",
                           "2606:4700::1111", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"})
    EXPECT_TRUE(is_public_text(text)) << text;
}

TEST(PublicAddress, AllOthers) {
  for (const char* text : {"0.0.0.0",
                           "10.1.2.3",
                           "100.64.0.1",
                           "127.0.0.1",
                           "127.255.255.255",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.0.2.1",
                           "192.88.99.1",
                           "192.168.1.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.1",
                           "203.0.113.1",
                           "224.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "fe80::1",
                           "fc00::1",
                           "fd12:3456::1",
                           "ff02::1",
                           "::ffff:127.0.0.1",
                           "::ffff:10.0.0.1",
                           "::127.0.0.1",
                           "64:ff9b::10.0.0.1",
                           "2001:db8::1",
                           "2002:7f00:1::1",
                           "2001::1",
                           "3fff:1::1",
                           "100::1"})
    EXPECT_FALSE(is_public_text(text)) << text;
  const sockaddr local{.sa_family = AF_UNIX, .sa_data = {}};
  EXPECT_FALSE(is_public(local));
}

}  // namespace
}  // namespace octavo::http
