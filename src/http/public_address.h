#pragma once

struct sockaddr;

namespace octavo::http {

// Returns whether the address can be that of a host on the internet. Returns false for addresses of this
// host, of private networks, of links (such as the metadata of clouds, 169.254.169.254) and for all other
// special addresses.
bool is_public(const sockaddr& address);

}  // namespace octavo::http
