// The command-line flags of `octavo serve` beyond those of the engine. Names follow `vllm serve`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/data_parallel.h"
#include "engine/load/placement.h"
#include "http/server.h"
#include "local/runtime.h"

namespace octavo {

struct ServeCommand {
  RuntimeOptions runtime;
  http::ServerOptions http;
  http::CorsOptions cors{.origins = {}};  // no origin: browsers of other origins may do nothing
  std::string fingerprint_mode = "full";
  std::string fingerprint_value;
  bool auto_tool_choice = true;
  bool engine_process = true;
  NumaOptions numa;
  DataParallelOptions data_parallel;
  int stand_ins = 1;
  bool run_engine = false;
  int run_rank = 0;
  bool headless = false;
  int shutdown_timeout_s = 30;
  double kv_offloading_gib = 0;  // 0: no tier
  std::string kv_offloading_backend = "native";
  std::string otlp_traces_endpoint;
  bool log_stats = true;
  double log_stats_interval_s = 10;
  bool list_flags = false;
  bool list_metrics = false;
  bool list_routes = false;
};

// Adds the flags to a subcommand; parsing fills `command`, which must outlive the subcommand.
void add_serve_flags(CLI::App& app, ServeCommand& command);

// docs/reference/flags.md: every flag of `vllm serve` and what becomes of it, and the flags that only Octavo has.
std::string flags_page(const CLI::App& serve);

}  // namespace octavo
