// Translates the command line of `vllm serve` for the option parser.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

// Rewrites the arguments after a subcommand's name:
//
//   --max_model_len 32k                     --max-model-len 32k
//   --no-enable-prefix-caching              --enable-prefix-caching=false, for every switch
//   -tp 2, -O3                              --tensor-parallel-size 2, --optimization-level 3
//   --x.a.b 1 --x.c+ d,e                    --x {"a":{"b":1},"c":["d","e"]}
//   --config file.yaml                      the file's flags; the command line overrides them
//
// Drops and logs vLLM's flags without effect in Octavo. Errors: an unsupported flag or value, and an unknown
// flag, with the nearest name.
Result<std::vector<std::string>> read_arguments(const CLI::App& command, std::vector<std::string> arguments);

}  // namespace octavo
