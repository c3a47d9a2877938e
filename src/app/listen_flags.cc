#include "app/listen_flags.h"

#include <cctype>
#include <optional>
#include <string>

#include "base/log.h"

namespace octavo {
namespace {

// As VLLM_LOGGING_LEVEL has them, in either case.
std::optional<LogLevel> log_level_named(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "debug" || name == "notset") return LogLevel::debug;
  if (name == "info") return LogLevel::info;
  if (name == "warning") return LogLevel::warning;
  if (name == "error" || name == "critical") return LogLevel::error;
  return std::nullopt;
}

}  // namespace

CLI::Option* add_log_level_flag(CLI::App& command) {
  return command
      .add_option_function<std::string>(
          "--log-level", [](const std::string& name) { set_log_level(*log_level_named(name)); },
          "Least level of log lines: debug, info, warning, error, critical")
      ->check([](const std::string& name) {
        return log_level_named(name) ? std::string() : "must be debug, info, warning, error or critical";
      });
}

void add_listen_flags(CLI::App& command, http::ServerOptions& http, int& shutdown_grace_s) {
  const char* group = "Server";
  http.host = "0.0.0.0";
  command.add_option("--host", http.host, "Address to listen on")->capture_default_str()->group(group);
  command.add_option("--port", http.port, "Port to listen on; any free one when 0")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--tls-cert-path", http.tls.certfile, "Serve https with the certificate in this PEM file")
      ->group(group);
  command
      .add_option("--tls-key-path", http.tls.keyfile, "PEM file of its private key (default: the same file)")
      ->group(group);
  command
      .add_option("--shutdown-grace-period-secs", shutdown_grace_s,
                  "Time for running requests to finish after a signal to stop")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str()
      ->group(group);
}

}  // namespace octavo
