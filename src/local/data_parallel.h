// Data parallelism over several servers or hosts: several servers after a load balancer (vLLM's external
// and hybrid load balancing), or one server that has engines on other hosts.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "local/runtime.h"

namespace octavo {

struct DataParallelOptions {
  std::optional<int> rank{};        // external load balancing: rank of this server's only engine
  std::optional<int> start_rank{};  // hybrid load balancing: rank of the server's first engine
  std::optional<int> size_local{};  // number of engines of this server
  bool external = false;
  bool hybrid = false;
  bool elastic = false;  // the number of engines can change at run time
  int engines_max = 64;
  std::string address = "127.0.0.1";  // address of the server, to which engines of other hosts connect
  int port = 29'550;
};

// Adds the flags. Parsing fills `options`, which must outlive the subcommand.
void add_data_parallel_flags(CLI::App& app, DataParallelOptions& options);

// Reduces `runtime` from the engines of all servers and hosts to the engines of this server, and sets the
// number of engines that connect from other hosts. headless: this host has no server. Errors name the
// field.
Result<> take_data_parallel(const DataParallelOptions& options, bool headless, RuntimeOptions& runtime);

}  // namespace octavo
