// The cost of an answer: one integer for each unit. The engine counts the units
// (engine/loop/step_costs.h); servers and routers add them up and report them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {

enum class CostUnit : std::uint8_t {
  prompt_tokens_computed,
  prompt_tokens_cached,
  prompt_tokens_from_peer,
  prompt_tokens_from_host,
  prompt_tokens_from_disk,
  tokens_recomputed,
  output_tokens,
  draft_tokens,
  draft_tokens_accepted,
  kv_bytes_loaded,
  kv_block_nanoseconds,
  compute_nanoseconds,
  encode_nanoseconds,
  energy_microjoules,
};
inline constexpr std::size_t kCostUnits = 14;

// Names of a CostUnit, and its scale in metrics.
struct CostField {
  std::string_view name;    // name in JSON, headers, logs, traces and price files
  std::string_view metric;  // part of the metric's name; contains Prometheus' base unit
  double per_base;          // number of cost units per base unit of the metric
  std::string_view help;
};
inline constexpr std::array<CostField, kCostUnits> kCostFields{{
    {"prompt_tokens_computed", "prompt_tokens_computed", 1, "Prompt tokens computed for the first time"},
    {"prompt_tokens_cached", "prompt_tokens_cached", 1, "Prompt tokens found in the engine's KV cache"},
    {"prompt_tokens_from_peer", "prompt_tokens_from_peer", 1, "Prompt tokens loaded from another engine"},
    {"prompt_tokens_from_host", "prompt_tokens_from_host", 1, "Prompt tokens loaded from host memory"},
    {"prompt_tokens_from_disk", "prompt_tokens_from_disk", 1, "Prompt tokens loaded from a disk or store"},
    {"tokens_recomputed", "tokens_recomputed", 1, "Tokens computed again after a preemption or a restart"},
    {"output_tokens", "output_tokens", 1, "Output tokens"},
    {"draft_tokens", "draft_tokens", 1, "Draft tokens verified"},
    {"draft_tokens_accepted", "draft_tokens_accepted", 1, "Draft tokens accepted"},
    {"kv_bytes_loaded", "kv_bytes_loaded", 1, "Bytes of KV blocks loaded from another engine or a tier"},
    {"kv_block_nanoseconds", "kv_block_seconds", 1e9,
     "Seconds for which answers used KV blocks, summed over the blocks"},
    {"compute_nanoseconds", "compute_seconds", 1e9, "Share of the time of the engine's steps"},
    {"encode_nanoseconds", "encode_seconds", 1e9, "Time to encode images, sounds and source texts"},
    {"energy_microjoules", "energy_joules", 1e6, "Share of the processors' energy (RAPL)"},
}};

struct AnswerCost {
  std::array<std::int64_t, kCostUnits> units{};  // index: CostUnit

  std::int64_t& operator[](CostUnit unit) { return units[static_cast<std::size_t>(unit)]; }
  std::int64_t operator[](CostUnit unit) const { return units[static_cast<std::size_t>(unit)]; }
  AnswerCost& operator+=(const AnswerCost& other) {
    for (std::size_t i = 0; i < kCostUnits; ++i) units[i] += other.units[i];
    return *this;
  }
  bool operator==(const AnswerCost&) const = default;
};

// Returns the value of the header X-Octavo-Cost, such as "prompt_tokens_computed=7,
// output_tokens=3". Leaves out units with 0. Returns "output_tokens=0" if all units are 0.
std::string cost_text(const AnswerCost& cost);
// Parses the text of cost_text(). Ignores unknown units, because a newer version may add some.
// Returns nullopt if the text has a wrong format, a unit twice, or a value above 2^53.
std::optional<AnswerCost> parse_cost_text(std::string_view text);

// Clients, such as gateways and routers, request the cost with the header "X-Octavo-Cost: 1". The response
// header has the same name. A stream of server-sent events ends with the cost as a comment, ": X-Octavo-Cost:
// ..".
inline constexpr std::string_view kCostHeader = "X-Octavo-Cost";

}  // namespace octavo
