// Reads the body of /v1/completions.
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

// A prompt as text, or as token ids that are not yet checked against the vocabulary.
using TextOrTokens = std::variant<std::string, std::vector<TokenId>>;

// Reads a text, a list of texts, a list of token ids, or a list of lists of token ids. Returns an error for
// more than `most` prompts.
Result<std::vector<TextOrTokens>> read_prompts(Fields& fields, std::string_view name, int most);

struct CompletionRequest {
  GenerationRequest generation;
  std::vector<TextOrTokens> prompts;
  // embeddings of each prompt; if not empty, the prompts' token ids are ignored
  std::vector<MediaPart> embeds;
  std::optional<std::string> suffix;  // text after the output, for models that fill in the middle
  bool echo = false;
  bool prompt_only = false;  // whether the reply has only the prompt: `echo` with max_tokens 0
};

Result<CompletionRequest> parse_completion_request(const boost::json::object& body,
                                                   const RequestRules& rules);

}  // namespace octavo::openai
