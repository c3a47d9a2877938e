// Flags of all fleet programs (router, picker, ..): address, time to stop, log level.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/server.h"
#include "local/flag_table.h"

namespace octavo {

// Adds --host (default 0.0.0.0), --port, --tls-cert-path and others. The arguments must outlive the
// subcommand.
void add_listen_flags(CLI::App& command, http::ServerOptions& http, int& shutdown_grace_s);

Result<> set_log_level_named(const std::string& name);
template <class Options>
Result<> take_log_level(const std::string& name, Options&) {
  return set_log_level_named(name);
}

template <class Options>
constexpr FlagRow<Options> log_level_flag(std::string_view environment = {}) {
  return {"--log-level",
          flag::parsed<take_log_level<Options>>,
          "Minimum level of log lines: debug, info, warning, error, critical",
          {},
          {.environment = environment}};
}

}  // namespace octavo
