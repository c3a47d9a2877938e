// Flags of `octavo serve` beside those of the engine, with the names of `vllm serve`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/engine_command.h"
#include "app/registration_flags.h"
#include "engine/load/placement.h"
#include "http/server.h"

namespace octavo {

// Settings of the field system_fingerprint in responses.
struct Fingerprint {
  std::string mode = "full";
  std::string value;
};

struct LogStats {
  bool enabled = true;
  double interval_s = 10;
};

// Lists to print; the server then does not start.
struct Lists {
  bool flags = false;
  bool routes = false;
  bool metrics = false;
  bool environment = false;
};

// Several models in one server.
struct ModelsOptions {
  std::string source;               // file or folder; "": none
  std::vector<std::string> others;  // models after the first on the command line
  std::int64_t memory_bytes = 0;    // memory for all models together; 0: 90 % of the available memory
  int slice_s = 5;
  bool given() const { return !source.empty() || !others.empty(); }
};

struct ServeCommand : EngineCommand {
  ModelsOptions models;
  http::ServerOptions http;
  // no origins by default, so browsers give pages of other sites no access
  http::CorsOptions cors{.origins = {}};
  Fingerprint fingerprint;
  bool auto_tool_choice = true;
  bool engine_process = true;
  NumaOptions numa;
  int stand_ins = 1;
  bool headless = false;
  int shutdown_timeout_s = 30;
  std::string batch_dir;                                  // "": no files and batches
  // maximum size of all batch files and results together
  std::int64_t batch_dir_bytes = std::int64_t{32} << 30;
  LogStats log_stats;
  RegistrationFlags registration;
  Lists lists;
};

// Parsing sets `command`, which must outlive the subcommand.
void add_serve_flags(CLI::App& app, ServeCommand& command);

// Returns docs/reference/flags.md: how Octavo handles each flag of `vllm serve`, and the flags that only
// Octavo has.
std::string flags_page(const CLI::App& serve);
// Returns docs/reference/environment.md: all environment variables, including those of vLLM.
std::string environment_page();

}  // namespace octavo
