// TLS for a client's connected socket, with the system's certificates (SSL_CERT_FILE and SSL_CERT_DIR name
// others, as for every program that uses OpenSSL).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::http {

class Tls {
 public:
  // Shakes hands over a blocking socket, whose timeouts hold here too and which stays the caller's. ca_file:
  // certificates (PEM) to trust in place of the system's; "": those. Errors: io; invalid_argument when the
  // server does not prove that it is `host`.
  static Result<Tls> start(int socket, const std::string& host, const std::string& ca_file = "");
  Tls(Tls&&) noexcept;
  Tls& operator=(Tls&&) noexcept;
  ~Tls();

  bool pending() const;                               // bytes that were received and not taken yet
  Result<std::size_t> receive(std::span<char> into);  // 0 at the end
  Result<> send(std::string_view bytes);

 private:
  struct State;
  explicit Tls(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::http
