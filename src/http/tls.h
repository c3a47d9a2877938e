// TLS for clients, and functions that load certificate files for clients and servers. Clients trust the
// system's certificates. As in every program with OpenSSL, SSL_CERT_FILE and SSL_CERT_DIR replace these.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/tls_session.h"

namespace octavo::http {

struct ClientTlsOptions {
  // PEM: authorities for servers' certificates, in addition to the system's
  std::vector<std::string> ca_files{};
  std::string certfile{};  // PEM: certificate of the client; "": no certificate
  std::string keyfile{};   // PEM: private key of the certificate; "": the key is in certfile
  bool verify = true;      // false: accepts any server certificate
};

// Returns the context of clients without options. It is shared, because loading the system's certificates
// is slow.
const std::shared_ptr<SSL_CTX>& system_tls_context();
// Returns a context for client sessions. Errors: a file cannot be read, or a key does not match; fields
// "ca-cert-paths", "client-cert-path" and "client-key-path".
Result<std::shared_ptr<SSL_CTX>> client_tls_context(const ClientTlsOptions& options);

void expect_host(SSL* ssl, const std::string& host);
// Loads a certificate chain and its private key; a keyfile "" means certfile. Errors name the field: a file
// cannot be read, or a key does not match.
Result<> use_certificate(SSL_CTX* context, const std::string& certfile, const std::string& keyfile,
                         std::string_view cert_field, std::string_view key_field);
// Returns OpenSSL's last error as an error of `field`. file: a path or a text.
std::unexpected<Error> wrong_tls_file(std::string_view field, const std::string& file);
// Returns a short reason for a failed call: an untrusted certificate, OpenSSL's last error, or a closed
// connection.
std::string tls_error(SSL* ssl);

}  // namespace octavo::http
