// Table of vLLM's environment variables, and what Octavo does with each (docs/reference/environment.md).
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
  std::vector<std::string> unread;  // vLLM's variables without effect here
  // variables that vLLM does not have, with the name that was probably meant
  std::vector<std::string> unknown;
};

// environment: "NAME=value" strings and a null pointer, as `environ`.
VariableWarnings check_vllm_variables(const char* const* environment);
// Logs the warnings, one line for each kind.
void log_vllm_variables(const char* const* environment);

}  // namespace octavo
