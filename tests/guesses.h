// The promise that draft tokens change no answer, tested for every way of proposing: random requests, among
// them ones with grammars and LoRA adapters, to an engine without draft tokens and to engines with them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/load/load.h"

namespace octavo {

// One way to propose, and a model that it proposes for.
struct Proposing {
  std::string name;
  std::string model;
  SpeculativeOptions speculation;
  bool right_at_times = true;  // false: random weights, no draft token need be accepted
};

std::vector<Proposing> all_proposing();

struct GuessReport {
  std::int64_t requests = 0;
  std::int64_t differences = 0;
  std::int64_t draft_tokens = 0;
  std::int64_t accepted = 0;
  std::int64_t preemptions = 0;
};

// Compares `requests` random requests, in rounds of steps of different sizes, with blocks for all and for
// few, with and without the prefix cache. device: "cpu" or "cuda". scratch: a folder for adapters.
GuessReport check_guesses(const Proposing& proposing, int requests, std::uint32_t seed, const std::string& device,
                          const std::filesystem::path& scratch);

}  // namespace octavo
