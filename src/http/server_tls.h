// TLS for the server's connections, with certificates from files.
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

// The names and meanings are those of vLLM's (uvicorn's) --ssl-* flags.
struct TlsOptions {
  std::string certfile{};    // PEM: certificate chain of the server; "": no TLS
  std::string keyfile{};     // PEM: private key of the certificate; "": the key is in certfile
  std::string ca_certs{};    // PEM: authorities that sign client certificates
  int cert_reqs = 0;         // client certificates: 0 not requested, 1 verified if sent, 2 required
  std::string ciphers{};     // OpenSSL's cipher list for TLS 1.2; "": OpenSSL's default
  bool refresh = false;      // reload the files when they change
  bool self_signed = false;  // new self-signed certificate instead of the files
  bool http2 = false;        // offer HTTP/2 instead of HTTP/1.1

  bool enabled() const { return !certfile.empty(); }
};

// The server's current certificates. May be used from any thread.
class ServerTls {
 public:
  // Errors name the flag: a file cannot be read, a key does not match the certificate, or a cipher is
  // unknown.
  static Result<std::unique_ptr<ServerTls>> load(TlsOptions options);

  // Starts a session. With `refresh`, it first reloads changed files, at most once per second. If the new
  // files are invalid, it logs the error and keeps the old certificates.
  std::unique_ptr<TlsSession> session();

 private:
  explicit ServerTls(TlsOptions options) : options_(std::move(options)) {}
  // Modification times of the three files.
  using Written = std::array<std::filesystem::file_time_type, 3>;
  Written written() const;

  const TlsOptions options_;
  std::mutex mutex_;
  std::shared_ptr<SSL_CTX> context_;
  Written written_{};
  std::int64_t looked_us_ = 0;
};

}  // namespace octavo::http
