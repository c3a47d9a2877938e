#include "app/listen_flags.h"

#include <cctype>
#include <optional>

#include "base/log.h"

namespace octavo {
namespace {

constexpr FlagRow<http::ServerOptions> kAddressFlags[] = {
    {"--host", flag::to<&http::ServerOptions::host>, "Address to listen on"},
    {"--port", flag::to<&http::ServerOptions::port>, "Port to listen on; 0: any free port"},
    {"--tls-cert-path", flag::to<&http::ServerOptions::tls, &http::TlsOptions::certfile>,
     "PEM file of the certificate; with it, the program uses https instead of http"},
    {"--tls-key-path", flag::to<&http::ServerOptions::tls, &http::TlsOptions::keyfile>,
     "PEM file of the certificate's private key (default: --tls-cert-path)"},
};

constexpr FlagRow<int> kGraceFlag[] = {
    {"--shutdown-grace-period-secs", flag::to<>,
     "Seconds that running requests have to finish after a signal to stop", flag::range(0, 3600)},
};

// name: as in VLLM_LOGGING_LEVEL, in upper or lower case.
std::optional<LogLevel> log_level_named(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "debug" || name == "notset") return LogLevel::debug;
  if (name == "info") return LogLevel::info;
  if (name == "warning" || name == "warn") return LogLevel::warning;  // "warn": SGLang's router
  if (name == "error" || name == "critical") return LogLevel::error;
  return std::nullopt;
}

}  // namespace

Result<> set_log_level_named(const std::string& name) {
  const auto level = log_level_named(name);
  if (!level) return invalid("", "must be debug, info, warning, error or critical");
  set_log_level(*level);
  return {};
}

void add_listen_flags(CLI::App& command, http::ServerOptions& http, int& shutdown_grace_s) {
  http.host = "0.0.0.0";
  add_flags(command, http, "Server", kAddressFlags);
  add_flags(command, shutdown_grace_s, "Server", kGraceFlag);
}

}  // namespace octavo
