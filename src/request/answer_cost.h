// The cost of an answer: one integer for each unit. The engine counts them (engine/loop/step_costs.h);
// servers and routers add and report them.
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

// The one description of a unit: for JSON, headers, metrics, logs, traces and prices.
struct CostField {
  std::string_view name;    // in JSON, headers, logs, traces and price files
  std::string_view metric;  // in names of metrics, in Prometheus' base units
  double per_base;          // number of units in a base unit
  std::string_view help;    // for metrics
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
    {"kv_block_nanoseconds", "kv_block_seconds", 1e9, "KV blocks held, times seconds"},
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

// A cost as text, "prompt_tokens_computed=7, output_tokens=3": the value of the header X-Octavo-Cost. Units
// with 0 are left out. An empty cost is "output_tokens=0".
std::string cost_text(const AnswerCost& cost);
// Reads such a text. Ignores unknown units, which a newer version may add. nullopt: the text has another
// form.
std::optional<AnswerCost> parse_cost_text(std::string_view text);

// Request header with which gateways and routers ask for the cost ("1"), and response header with the cost.
// In a stream of server-sent events the cost is a comment after the last event: ": X-Octavo-Cost: ..".
inline constexpr std::string_view kCostHeader = "X-Octavo-Cost";

}  // namespace octavo
