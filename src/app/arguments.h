// Command lines written for `vllm serve`, turned into what the option parser takes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

// Rewrites the arguments behind a subcommand's name:
//   --max_model_len 32k                     --max-model-len 32k
//   --no-enable-prefix-caching              --enable-prefix-caching=false, for every switch
//   -tp 2, -O3                              --tensor-parallel-size 2, --optimization-level 3
//   --x.a.b 1 --x.c+ d,e                    --x {"a":{"b":1},"c":["d","e"]}
//   --config file.yaml                      the flags in that file, which those of the command line override
// Flags of vLLM that are no options here are dropped with a line in the log, when they change nothing.
// Errors: a flag that asks for what Octavo does not do, and one that nobody knows, with the nearest name.
Result<std::vector<std::string>> read_arguments(const CLI::App& command, std::vector<std::string> arguments);

}  // namespace octavo
