// TLS for clients, and functions that load certificate files for clients and servers. Clients trust the
// system's certificates (SSL_CERT_FILE and SSL_CERT_DIR replace them, as for every program with OpenSSL).
#pragma once

#include <memory>
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

// The context of clients without options. All share it, because loading the system's certificates is slow.
const std::shared_ptr<SSL_CTX>& system_tls_context();
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

}  // namespace octavo::http
