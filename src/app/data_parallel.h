// Data parallelism over several servers or hosts. Servers whose requests something in front shares out:
// vLLM's external and hybrid load balancing. Or one server, with engines on hosts that have none.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "local/runtime.h"

namespace octavo {

struct DataParallelOptions {
  std::optional<int> rank{};        // external: of this server's only engine
  std::optional<int> start_rank{};  // hybrid: of the first of its engines
  std::optional<int> size_local{};  // how many they are
  bool external = false;
  bool hybrid = false;
  bool elastic = false;  // the number of engines can change
  int engines_max = 64;
  std::string address = "127.0.0.1";  // of the one server, where engines of other hosts come to
  int port = 29'550;
};

// Parsing fills `options`, which must outlive the subcommand.
void add_data_parallel_flags(CLI::App& app, DataParallelOptions& options);

// Makes the runtime's engines, so far those of all servers and hosts together, those of this one, and says
// how many it waits for of other hosts. headless: this host has no server. Errors name the field.
Result<> take_data_parallel(const DataParallelOptions& options, bool headless, RuntimeOptions& runtime);

}  // namespace octavo
