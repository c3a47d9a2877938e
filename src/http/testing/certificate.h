#pragma once

#include <fstream>
#include <string>

#include "http/self_signed.h"

namespace octavo::http {

// Writes a self-signed certificate for 127.0.0.1, and its key, to PEM files.
inline void write_certificate(const std::string& certfile, const std::string& keyfile, const char* name) {
  const SelfSigned made = make_self_signed(name, "IP:127.0.0.1");
  std::ofstream(certfile) << made.certificate;
  std::ofstream(keyfile) << made.key;
}

}  // namespace octavo::http
