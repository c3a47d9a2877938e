// vLLM's environment variables, and how Octavo handles them: docs/reference/environment.md.
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
  std::vector<std::string> unread;   // variables of vLLM without an effect here
  std::vector<std::string> unknown;  // variables unknown to vLLM, with the name that was probably meant
};

// environment: "NAME=value" strings, then null, as in `environ`.
VariableWarnings check_vllm_variables(const char* const* environment);
// Logs these variables, one line for each kind.
void log_vllm_variables(const char* const* environment);

}  // namespace octavo
