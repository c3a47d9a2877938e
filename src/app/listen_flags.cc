#include "app/listen_flags.h"

namespace octavo {

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
