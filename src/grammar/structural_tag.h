// Structural tags: free text that contains tags, whose contents follow a grammar. XGrammar and vLLM have
// two forms.
//
// Legacy: {"structures": [{"begin": "<f>", "schema": {...}, "end": "</f>"}], "triggers": ["<f"]}. Text is
// free until a trigger occurs, which must continue as one of the tags.
//
// Current: {"type": "structural_tag", "format": F}. F is one of const_string {value}, json_schema
// {json_schema}, regex {pattern}, grammar {grammar}, any_text, sequence {elements}, or {elements}, tag
// {begin, content, end}, triggered_tags {triggers, tags, at_least_one, stop_after_first},
// tags_with_separator {tags, separator, ...}.
#pragma once

#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/json_schema.h"

namespace octavo::grammar {

Result<Grammar> structural_tag_grammar(std::string_view spec, const JsonOptions& options = {});

}  // namespace octavo::grammar
