// A prompt's tokens as its replica has them, to find it in the index of KV events.
#pragma once

#include <memory>
#include <optional>

#include "base/error.h"
#include "fleet/view/route_request.h"
#include "http/message.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo::fleet {

class PromptTokens {
 public:
  // The tokenizer of the replicas' model, with its own chat template. Errors: a template that is none.
  static Result<PromptTokens> make(std::shared_ptr<const Tokenizer> tokenizer);

  // Writes the ids of /v1/completions and /v1/chat/completions into `route`. What is none, or longer than a
  // megabyte, or wrong in any way keeps its estimate: the replica says what is wrong.
  void write(const http::Request& request, RouteRequest& route) const;

 private:
  explicit PromptTokens(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  Result<std::vector<std::int32_t>> ids(const http::Request& request, bool chat,
                                        const RouteRequest& route) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplate> plain_, with_tools_;  // empty if the model has none
};

}  // namespace octavo::fleet
