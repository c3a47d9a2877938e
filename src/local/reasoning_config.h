// vLLM's --reasoning-config: the texts before and after the reasoning. Here, the reasoning parser determines
// both, so the texts must be those of the parser.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "serve/openai/reasoning.h"
#include "text/tokenizer.h"

namespace octavo {

struct ReasoningConfig {
  std::string parser{};        // "": the one of --reasoning-parser
  std::string begin{}, end{};  // "": not given
};

// Returns an error that names an unknown field, or a field that is not a string.
Result<ReasoningConfig> read_reasoning_config(const boost::json::object& config);

// Returns an error if a text is given and is not the token of the rule. rule: null without a reasoning
// parser.
Result<> check_reasoning_config(const ReasoningConfig& config, const openai::ReasoningRule* rule,
                                const Tokenizer& tokenizer);

}  // namespace octavo
