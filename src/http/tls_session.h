// One TLS connection without a socket: decrypts received bytes and encrypts bytes to send, so that event
// loops need no separate code for TLS.
#pragma once

#include <memory>
#include <span>
#include <string>

using SSL = struct ssl_st;
using SSL_CTX = struct ssl_ctx_st;

namespace octavo::http {

class TlsSession {
 public:
  static std::unique_ptr<TlsSession> of_server(std::shared_ptr<SSL_CTX> context);
  // Begins the handshake: the next seal() returns its first message. The server's certificate must be valid
  // for `host`.
  static std::unique_ptr<TlsSession> of_client(std::shared_ptr<SSL_CTX> context, const std::string& host);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // Decrypts received bytes and appends the plain bytes. If it returns false, send what seal() returns, then
  // close the connection.
  bool open(std::span<const char> received, std::string& plain);
  bool handshake_done() const;
  bool ended() const;  // whether the peer has sent its last byte
  // Replaces plain bytes with the bytes to send: handshake messages, then encrypted data. Until the handshake
  // is done, the session keeps the plain bytes.
  void seal(std::string& bytes);
  bool has_pending() const;   // whether seal() without plain bytes would return bytes to send
  void close();               // prepares the closing message to the peer; the next seal() returns it
  std::string wrong() const;  // returns a short reason after open() returned false
  bool trusted() const;       // false: the handshake found a certificate that is not trusted

 private:
  explicit TlsSession(std::shared_ptr<SSL_CTX> context);

  std::shared_ptr<SSL_CTX> context_;
  SSL* ssl_;
  std::string early_;  // plain bytes received in seal() before the handshake was done
  std::string wrong_;
};

}  // namespace octavo::http
