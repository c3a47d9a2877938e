// Flags of `octavo serve` in addition to those of the engine. Names are those of `vllm serve`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/registration_flags.h"
#include "engine/load/placement.h"
#include "http/server.h"
#include "local/runtime_flags.h"

namespace octavo {

// The reply field system_fingerprint.
struct Fingerprint {
  std::string mode = "full";
  std::string value;
};

// A process that the server starts: an engine, or one of its ranks.
struct ChildProcess {
  bool runs_engine = false;
  int rank = 0;
};

struct LogStats {
  bool enabled = true;
  double interval_s = 10;
};

// Lists to print instead of serving.
struct Lists {
  bool flags = false;
  bool routes = false;
  bool metrics = false;
  bool environment = false;
};

struct ServeCommand : RuntimeCommand {
  http::ServerOptions http;
  http::CorsOptions cors{.origins = {}};  // no origin: browsers of other origins have no access
  Fingerprint fingerprint;
  bool auto_tool_choice = true;
  bool engine_process = true;
  NumaOptions numa;
  int stand_ins = 1;
  ChildProcess child;
  bool headless = false;
  int shutdown_timeout_s = 30;
  std::string batch_dir;  // "": files and batches are off
  std::int64_t batch_dir_bytes = std::int64_t{32} << 30;  // maximum bytes of all files and answers
  LogStats log_stats;
  RegistrationFlags registration;
  Lists lists;
};

// Adds the flags to a subcommand; parsing sets `command`, which must outlive the subcommand.
void add_serve_flags(CLI::App& app, ServeCommand& command);

// docs/reference/flags.md: the support of each flag of `vllm serve`, and the flags that only Octavo has.
std::string flags_page(const CLI::App& serve);
// docs/reference/environment.md: environment variables, and the support of vLLM's.
std::string environment_page();

}  // namespace octavo
