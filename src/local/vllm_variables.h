// Environment variables of vLLM, and what Octavo does with them: docs/reference/environment.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

struct VllmVariable {
  std::string_view name;
  std::string_view effect;
};

std::span<const VllmVariable> read_vllm_variables();
std::vector<std::string_view> other_vllm_variables();

struct VariableWarnings {
  std::vector<std::string> unread;   // variables of vLLM that have no effect
  std::vector<std::string> unknown;  // no variables of vLLM, with the name that may be meant
};

// environment: "NAME=value" each, then nullptr, as `environ`.
VariableWarnings check_vllm_variables(const char* const* environment);
// Logs them, in a line for each kind.
void log_vllm_variables(const char* const* environment);

}  // namespace octavo
