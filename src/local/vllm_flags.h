// Table of all flags of `vllm serve`, and what Octavo does with each. The command line and
// docs/reference/flags.md use it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Number of values that follow the flag.
enum class Takes : std::uint8_t { nothing, value, values, maybe_value };

struct VllmFlag {
  std::string_view name;       // such as "--tensor-parallel-size"
  std::string_view shorthand;  // such as "-tp", or ""
  Takes takes = Takes::value;
  // true: `octavo serve` has this flag, and the fields below are unused
  bool works = false;
  // values without effect here, separated by '|'; "*": all values
  std::string_view harmless{};
  // why the flag has no effect, or why other values are an error
  std::string_view reason{};
  // JSON field that the flag sets, such as "--speculative-config.method", or ""
  std::string_view stands_for{};
};

// Returns the table of flags, in the order of vLLM's groups.
std::span<const VllmFlag> vllm_flags();
// Returns null if vLLM has no such flag.
const VllmFlag* find_vllm_flag(std::string_view name);

// Checks the value of a flag that Octavo does not have. The value of a switch is "true" or "false". Returns
// an error if the value requests a feature that Octavo does not have.
Result<> check_harmless(const VllmFlag& flag, std::string_view value);

}  // namespace octavo
