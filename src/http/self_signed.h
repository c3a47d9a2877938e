// Makes self-signed certificates, for servers whose clients do not verify them, and for tests.
#pragma once

#include <string>

namespace octavo::http {

struct SelfSigned {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

// The key is a new P-256 key. The certificate is valid for ten years. alternative_names: in OpenSSL's
// syntax, such as "IP:127.0.0.1".
SelfSigned make_self_signed(const std::string& name, const std::string& alternative_names);

}  // namespace octavo::http
