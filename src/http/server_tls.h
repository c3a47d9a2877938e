// TLS of the server's connections: certificates from files.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"
#include "http/tls_session.h"

namespace octavo::http {

// Names and meanings of vLLM's (uvicorn's) --ssl-* flags.
struct TlsOptions {
  std::string certfile{};  // PEM: the server's certificate and those above it; "": no TLS
  std::string keyfile{};   // PEM: its private key; "": it stands in the certfile
  std::string ca_certs{};  // PEM: who may sign clients' certificates
  int cert_reqs =
      0;  // a client's certificate: 0 is not asked for, 1 is checked where there is one, 2 must be there
  std::string ciphers{};     // OpenSSL's list, for TLS 1.2; "": its default
  bool refresh = false;      // read the files again when they change
  bool self_signed = false;  // a certificate that signs itself, made anew, in place of the files
  bool http2 = false;        // what is spoken, in place of HTTP/1.1

  bool enabled() const { return !certfile.empty(); }
};

// The certificates, as they are on disk now. Any thread.
class ServerTls {
 public:
  // Errors name the flag: a file that cannot be read, a key that does not fit, an unknown cipher.
  static Result<std::unique_ptr<ServerTls>> load(TlsOptions options);

  // Under `refresh`, files that have changed are read first, at most once a second. While they are wrong, the
  // old ones stay, and the log says so.
  std::unique_ptr<TlsSession> session();

 private:
  explicit ServerTls(TlsOptions options) : options_(std::move(options)) {}
  // When each of the three files was last written.
  using Written = std::array<std::filesystem::file_time_type, 3>;
  Written written() const;

  const TlsOptions options_;
  std::mutex mutex_;
  std::shared_ptr<SSL_CTX> context_;
  Written written_{};
  std::int64_t looked_us_ = 0;
};

}  // namespace octavo::http
