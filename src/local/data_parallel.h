// Flags for data parallelism over several servers or hosts. Either there are several servers behind a load
// balancer (vLLM's external and hybrid load balancing), or one server has engines on other hosts.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "local/runtime.h"

namespace octavo {

struct DataParallelOptions {
  // external load balancing: rank of this server's only engine
  std::optional<int> rank{};
  // hybrid load balancing: rank of this server's first engine
  std::optional<int> start_rank{};
  std::optional<int> size_local{};  // number of engines of this server
  bool external = false;
  bool hybrid = false;
  bool elastic = false;  // engines can be added and removed at run time
  int engines_max = 64;
  std::string address = "127.0.0.1";  // address of the server, to which engines on other hosts connect
  int port = 29'550;
};

// Parsing fills `options`, which must outlive the subcommand.
void add_data_parallel_flags(CLI::App& app, DataParallelOptions& options);

// At first, `runtime` describes the engines of all servers and hosts. This function keeps only this
// server's engines and sets how many engines connect from other hosts. headless: this host has no server.
// Errors name the field.
Result<> take_data_parallel(const DataParallelOptions& options, bool headless, RuntimeOptions& runtime);

}  // namespace octavo
