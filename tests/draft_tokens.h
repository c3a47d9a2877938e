// Tests that draft tokens change no output, for every proposer. Random requests, some with grammars and
// LoRA adapters, run on engines with and without draft tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/load/load.h"

namespace octavo {

// A proposer and a model for it.
struct Proposing {
  std::string name;
  std::string model;
  SpeculativeOptions speculation;
  // false: the weights are random, so perhaps no draft token is accepted
  bool right_at_times = true;
};

std::vector<Proposing> all_proposing();

struct DraftTokenReport {
  std::int64_t requests = 0;
  std::int64_t differences = 0;
  std::int64_t draft_tokens = 0;
  std::int64_t accepted = 0;
  std::int64_t preemptions = 0;
};

// Compares `requests` random requests in rounds: different step sizes, many and few KV blocks, with and
// without the prefix cache. device: "cpu" or "cuda". scratch: folder for adapters.
DraftTokenReport check_draft_tokens(const Proposing& proposing, int requests, std::uint32_t seed,
                                    const std::string& device, const std::filesystem::path& scratch);

}  // namespace octavo
