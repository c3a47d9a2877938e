// Every flag of `vllm serve` and how Octavo handles it: the table for the command line and
// docs/reference/flags.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// The values that follow a flag on the command line.
enum class Takes : std::uint8_t { nothing, value, values, maybe_value };

struct VllmFlag {
  std::string_view name;       // "--tensor-parallel-size"
  std::string_view shorthand;  // "-tp", or ""
  Takes takes = Takes::value;
  bool works = false;             // an option of `octavo serve`; the rest is of flags that are none
  std::string_view harmless{};    // values that change nothing here, parted by '|'; "*": any
  std::string_view reason{};      // why the flag has no effect, or why other values are refused
  std::string_view stands_for{};  // "--speculative-config.method": that field of a JSON flag, else ""
};

// Flags in the order of vLLM's groups.
std::span<const VllmFlag> vllm_flags();
// nullptr: vLLM has none of that name.
const VllmFlag* find_vllm_flag(std::string_view name);

// A flag that is no option here was given with this value ("true" or "false" for switches). Errors: the value
// asks for something that Octavo does not do.
Result<> check_harmless(const VllmFlag& flag, std::string_view value);

}  // namespace octavo
