// TLS of clients, and what both sides read from files. Clients trust the system's certificates (SSL_CERT_FILE
// and SSL_CERT_DIR name others, as for every program that uses OpenSSL).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/tls_session.h"

namespace octavo::http {

struct ClientTlsOptions {
  std::vector<std::string> ca_files{};  // PEM: who may sign servers' certificates, beside the system's list
  std::string certfile{};               // PEM: the client's own certificate; "": none
  std::string keyfile{};                // PEM: its private key; "": it stands in the certfile
};

// Of sessions. Errors: a file that cannot be read, a key that does not fit; fields "ca-cert-paths",
// "client-cert-path" and "client-key-path".
Result<std::shared_ptr<SSL_CTX>> client_tls_context(const ClientTlsOptions& options);

// The server must prove that it is `host`, a name or an address.
void expect_host(SSL* ssl, const std::string& host);
// Reads a certificate, those above it, and its private key ("": it stands in the same file). Errors name the
// field: a file that cannot be read, a key that does not fit.
Result<> use_certificate(SSL_CTX* context, const std::string& certfile, const std::string& keyfile,
                         std::string_view cert_field, std::string_view key_field);
// What OpenSSL says is wrong with the file, or the text, that `field` names.
std::unexpected<Error> wrong_tls_file(std::string_view field, const std::string& file);
// Why a call failed, in a few words: a certificate that is not to be trusted, OpenSSL's last error, or a
// closed connection.
std::string tls_error(SSL* ssl);

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
