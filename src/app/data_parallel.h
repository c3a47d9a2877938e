// Data parallelism whose requests something in front shares out: vLLM's external and hybrid load balancing.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "engine/engine_options.h"

namespace octavo {

struct DataParallelOptions {
  std::optional<int> rank{};        // external: of this server's only engine
  std::optional<int> start_rank{};  // hybrid: of the first of its engines
  std::optional<int> size_local{};  // how many they are
  bool external = false;
  bool hybrid = false;
  bool elastic = false;  // engines come and go
  int engines_max = 64;
};

// Parsing fills `options`, which must outlive the subcommand.
void add_data_parallel_flags(CLI::App& app, DataParallelOptions& options);

// Makes `engine`'s engines, so far those of all servers together, those of this one: data_parallel_size and
// first_index. Errors name the field.
Result<> take_data_parallel(const DataParallelOptions& options, EngineOptions& engine);

}  // namespace octavo
