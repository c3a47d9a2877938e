// TLS for clients, and functions that load certificate files for clients and servers. Clients trust the
// system's certificates (SSL_CERT_FILE and SSL_CERT_DIR replace them, as for every program with OpenSSL).
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
  // PEM: authorities that sign servers' certificates, in addition to the system's
  std::vector<std::string> ca_files{};
  std::string certfile{};  // PEM: the client's certificate; "": none
  std::string keyfile{};   // PEM: the certificate's private key; "": the key is in certfile
  bool verify = true;      // false: accepts any server certificate
};

// Context for client sessions. Errors: an unreadable file, a key that does not match; fields "ca-cert-paths",
// "client-cert-path" and "client-key-path".
Result<std::shared_ptr<SSL_CTX>> client_tls_context(const ClientTlsOptions& options);

// Requires that the server's certificate is valid for `host`, a name or an address.
void expect_host(SSL* ssl, const std::string& host);
// Loads a certificate chain and its private key ("": in the same file). Errors name the field: an unreadable
// file, a key that does not match.
Result<> use_certificate(SSL_CTX* context, const std::string& certfile, const std::string& keyfile,
                         std::string_view cert_field, std::string_view key_field);
// OpenSSL's last error as an error of `field`. file: a path or a text.
std::unexpected<Error> wrong_tls_file(std::string_view field, const std::string& file);
// A short reason for a failed call: an untrusted certificate, OpenSSL's last error, or a closed connection.
std::string tls_error(SSL* ssl);

class Tls {
 public:
  // Performs the handshake over a blocking socket. The caller still owns the socket; its timeouts apply.
  // ca_file: certificates (PEM) to trust instead of the system's; "": the system's. Errors: io;
  // invalid_argument if the server's certificate is not valid for `host`.
  static Result<Tls> start(int socket, const std::string& host, const std::string& ca_file = "");
  Tls(Tls&&) noexcept;
  Tls& operator=(Tls&&) noexcept;
  ~Tls();

  bool pending() const;                               // decrypted bytes are available that were not read yet
  Result<std::size_t> receive(std::span<char> into);  // number of bytes; 0 at the end of the stream
  Result<> send(std::string_view bytes);

 private:
  struct State;
  explicit Tls(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::http
