// Converts JSON Schema (draft 4 to draft 2020-12; `$schema` selects the draft) to a grammar of valid JSON
// texts.
//
// Every text of the grammar is valid, but the grammar lacks some valid texts, for example those with unusual
// white space. A keyword that cannot be enforced is an error that contains its JSON pointer.
// docs/reference/json-schema.md lists the keywords and the missing texts.
#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/grammar_source.h"

namespace octavo::grammar {

Result<Grammar> json_schema_grammar(std::string_view schema, const JsonOptions& options = {});

// Returns the grammar of any JSON object (response_format json_object).
Result<Grammar> json_object_grammar(const JsonOptions& options = {});

Result<RuleId> add_json_schema(Grammar& grammar, std::string_view schema, const JsonOptions& options,
                               std::string_view field);

}  // namespace octavo::grammar
