// Tests that draft tokens change no answer, for every proposer. Random requests, some with grammars and LoRA
// adapters, run on an engine without draft tokens and on engines with them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/load/load.h"

namespace octavo {

// A proposer, and a model for which it proposes draft tokens.
struct Proposing {
  std::string name;
  std::string model;
  SpeculativeOptions speculation;
  bool right_at_times = true;  // false: the weights are random, so possibly no draft token is accepted
};

std::vector<Proposing> all_proposing();

struct GuessReport {
  std::int64_t requests = 0;
  std::int64_t differences = 0;
  std::int64_t draft_tokens = 0;
  std::int64_t accepted = 0;
  std::int64_t preemptions = 0;
};

// Compares `requests` random requests, in rounds with steps of different sizes, with enough blocks for all
// sequences and with few blocks, with and without the prefix cache. device: "cpu" or "cuda". scratch: folder
// for adapters.
GuessReport check_guesses(const Proposing& proposing, int requests, std::uint32_t seed, const std::string& device,
                          const std::filesystem::path& scratch);

}  // namespace octavo
