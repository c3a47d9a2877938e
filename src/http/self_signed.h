// A self-signed certificate, for servers whose clients do not verify it, and for tests.
#pragma once

#include <string>

namespace octavo::http {

struct SelfSigned {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

// Makes a certificate for `name` with a new P-256 key, valid for ten years. alternative_names: in OpenSSL's
// syntax, such as "IP:127.0.0.1".
SelfSigned make_self_signed(const std::string& name, const std::string& alternative_names);

}  // namespace octavo::http
