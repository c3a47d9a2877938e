// The body of /v1/completions.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "request/media_part.h"
#include "serve/openai/generation_fields.h"

namespace octavo::openai {

// A prompt: a text, or token ids (not yet checked against the vocabulary).
using TextOrTokens = std::variant<std::string, std::vector<TokenId>>;

// Reads a text, a list of texts, a list of ids, or a list of such lists; at most `most` prompts.
Result<std::vector<TextOrTokens>> read_prompts(Fields& fields, std::string_view name, int most);

struct CompletionRequest {
  GenerationRequest generation;
  std::vector<TextOrTokens> prompts;
  std::vector<MediaPart> embeds;      // not empty: each prompt is these rows, and its ids have no meaning
  std::optional<std::string> suffix;  // text after the output; the model fills the gap
  bool echo = false;         // the answer begins with the prompt
  bool prompt_only = false;  // echo with max_tokens = 0: the client gets only the prompt
};

Result<CompletionRequest> parse_completion_request(const boost::json::object& body,
                                                   const RequestRules& rules);

}  // namespace octavo::openai
