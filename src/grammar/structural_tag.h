//
// Structural tags: unconstrained text that contains tags, whose contents follow a grammar. XGrammar and vLLM have
// two forms.
#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/json_schema.h"

namespace octavo::grammar {

Result<Grammar> structural_tag_grammar(std::string_view spec, const JsonOptions& options = {});

}  // namespace octavo::grammar
