// Table of every flag of `vllm serve`, and how Octavo handles it. The command line and
// docs/reference/flags.md use it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Number of values after the flag on the command line.
enum class Takes : std::uint8_t { nothing, value, values, maybe_value };

struct VllmFlag {
  std::string_view name;       // such as "--tensor-parallel-size"
  std::string_view shorthand;  // such as "-tp"; "" without one
  Takes takes = Takes::value;
  bool works = false;             // an option of `octavo serve`, which needs no further fields
  std::string_view harmless{};    // values that change nothing here, separated by '|'; "*": all
  std::string_view reason{};      // reason why the flag has no effect, or why other values are refused
  std::string_view stands_for{};  // JSON field that the flag sets, such as "--speculative-config.method";
                                  // "" without one
};

// Returns the flags in the order of vLLM's groups.
std::span<const VllmFlag> vllm_flags();
// Returns the flag, or null if vLLM has no flag with this name.
const VllmFlag* find_vllm_flag(std::string_view name);

// Checks the value ("true" or "false" for switches) of a flag that is not an option of Octavo. Errors: the
// value requests a feature that Octavo does not support.
Result<> check_harmless(const VllmFlag& flag, std::string_view value);

}  // namespace octavo
