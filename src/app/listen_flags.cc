#include "app/listen_flags.h"

#include "local/flag_table.h"

namespace octavo {
namespace {

constexpr FlagRow<http::ServerOptions> kAddressFlags[] = {
    {"--host", flag::to<&http::ServerOptions::host>, "Address to listen on"},
    {"--port", flag::to<&http::ServerOptions::port>, "Port to listen on; any free one when 0"},
    {"--tls-cert-path", flag::to<&http::ServerOptions::tls, &http::TlsOptions::certfile>,
     "Serve https with the certificate in this PEM file"},
    {"--tls-key-path", flag::to<&http::ServerOptions::tls, &http::TlsOptions::keyfile>,
     "PEM file of its private key (default: the same file)"},
};

constexpr FlagRow<int> kGraceFlag[] = {
    {"--shutdown-grace-period-secs", flag::to<>, "Time for running requests to finish after a signal to stop",
     flag::range(0, 3600)},
};

}  // namespace

void add_listen_flags(CLI::App& command, http::ServerOptions& http, int& shutdown_grace_s) {
  http.host = "0.0.0.0";
  add_flags(command, http, "Server", kAddressFlags);
  add_flags(command, shutdown_grace_s, "Server", kGraceFlag);
}

}  // namespace octavo
