// Reads vLLM's --reasoning-config: the texts before and after the reasoning. In Octavo the reasoning parser
// determines both texts, so the given texts must be equal to them.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "serve/openai/reasoning.h"
#include "text/tokenizer.h"

namespace octavo {

struct ReasoningConfig {
  std::string parser{};        // "": that of --reasoning-parser
  std::string begin{}, end{};  // "": not given
};

// Errors name an unknown field, or a field that is not a string.
Result<ReasoningConfig> read_reasoning_config(const boost::json::object& config);

// Returns an error if a given text is not the token of the rule. rule: null without a reasoning parser.
Result<> check_reasoning_config(const ReasoningConfig& config, const openai::ReasoningRule* rule,
                                const Tokenizer& tokenizer);

}  // namespace octavo
