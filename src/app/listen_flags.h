// The address on which a program of the fleet listens, and its time to stop.
#pragma once

#include <CLI/CLI.hpp>

#include "http/server.h"

namespace octavo {

// --host (0.0.0.0 unless given), --port, --tls-cert-path and so on; parsing fills both, which must outlive
// the subcommand.
void add_listen_flags(CLI::App& command, http::ServerOptions& http, int& shutdown_grace_s);

// --log-level; parsing sets it.
CLI::Option* add_log_level_flag(CLI::App& command);

}  // namespace octavo
