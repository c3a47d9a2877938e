// One TLS connection without a socket. It decrypts received bytes and encrypts bytes to send, so
// connections need no separate code for TLS.
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
  // Begins the handshake; the next seal() returns its first message. The server's certificate must be valid
  // for `host`.
  static std::unique_ptr<TlsSession> of_client(std::shared_ptr<SSL_CTX> context, const std::string& host);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // Appends the decrypted bytes to `plain`. If it returns false, send the bytes of seal() and close the
  // connection.
  bool open(std::span<const char> received, std::string& plain);
  bool handshake_done() const;
  bool ended() const;  // whether the peer has sent its last byte
  // Replaces plain bytes with the bytes to send. Before the end of the handshake, keeps the plain bytes and
  // returns handshake messages.
  void seal(std::string& bytes);
  // Returns true if there are bytes to send even without plain bytes. seal() of an empty string returns them.
  bool has_pending() const;
  // Makes the next seal() return the closing message.
  void close();
  std::string wrong() const;  // Returns why open() returned false.
  // Returns true if open() failed because the peer sent an HTTP request without TLS.
  bool got_plain_http() const { return got_plain_http_; }
  // Returns false if the certificate of the peer is not trusted.
  bool trusted() const;

 private:
  explicit TlsSession(std::shared_ptr<SSL_CTX> context);

  std::shared_ptr<SSL_CTX> context_;
  SSL* ssl_;
  std::string early_;  // plain bytes that wait for the end of the handshake
  std::string wrong_;
  bool got_plain_http_ = false;
};

}  // namespace octavo::http
