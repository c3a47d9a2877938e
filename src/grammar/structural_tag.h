// Structural tags: free text in which tagged parts follow a grammar, in the two forms of XGrammar and vLLM.
//
// Legacy: {"structures": [{"begin": "<f>", "schema": {...}, "end": "</f>"}], "triggers": ["<f"]}: text is
// free until a trigger appears, which must continue as one of the tags. New: {"type": "structural_tag",
// "format": F}, F one of const_string {value}, json_schema {json_schema}, regex {pattern}, grammar {grammar},
// any_text, sequence {elements}, or {elements}, tag {begin, content, end}, triggered_tags {triggers, tags,
// at_least_one, stop_after_first}, tags_with_separator {tags, separator, ...}.
#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/json_schema.h"

namespace octavo::grammar {

Result<Grammar> structural_tag_grammar(std::string_view spec, const JsonOptions& options = {});

}  // namespace octavo::grammar
