// Converts a command line of `vllm serve` to Octavo's flags.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

// If a flag is repeated, the last value counts, as in vLLM.
void take_last(CLI::App& app);

// Rewrites the arguments after the name of a subcommand:
//
//   --max_model_len 32k                     --max-model-len 32k
//   --no-enable-prefix-caching              --enable-prefix-caching=false, for every switch
//   --disable-prefix-caching                --enable-prefix-caching=false
//   --enable-log-stats                      --disable-log-stats=false
//   -tp 2, -O3                              --tensor-parallel-size 2, --optimization-level 3
//   --x.a.b 1 --x.c+ d,e                    --x {"a":{"b":1},"c":["d","e"]}
//   --config file.yaml                      the file's flags; the command line overrides them
//
// A prefix of exactly one flag is this flag: --max-num-seq is --max-num-seqs.
// Logs and drops vLLM's flags without effect here. Returns an error for a flag or value that is not
// supported, and for an unknown flag, with the most similar name.
Result<std::vector<std::string>> read_arguments(const CLI::App& command, std::vector<std::string> arguments);

}  // namespace octavo
