// Computes the token ids of a prompt in the same way as the workers, so that prompts match the blocks in KV
// cache events.
#pragma once

#include <atomic>
#include <cstdint>
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
  // `tokenizer` is that of the workers' model, with the chat template. Returns an error if the template is
  // invalid.
  static Result<PromptTokens> make(std::shared_ptr<const Tokenizer> tokenizer);

  // Writes the prompt's token ids to `route`, for /v1/completions and /v1/chat/completions. For all other
  // requests, invalid bodies, and bodies above 1 MiB, `route` keeps its estimated tokens.
  void write(const http::Request& request, RouteRequest& route) const;

  // Returns whether the number of tokens equals the number that the worker reported. Several consecutive
  // mismatches mean that the workers have a different tokenizer or template. write() then does nothing any
  // more. Thread-safe.
  bool compare(std::size_t tokens, std::int64_t reported) const;

 private:
  explicit PromptTokens(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)), mismatches_(std::make_unique<std::atomic<int>>(0)) {}
  Result<std::vector<std::int32_t>> ids(const http::Request& request, bool chat,
                                        const RouteRequest& route) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplate> plain_, with_tools_;  // nullopt: the model has no chat template
  std::unique_ptr<std::atomic<int>> mismatches_;
};

}  // namespace octavo::fleet
