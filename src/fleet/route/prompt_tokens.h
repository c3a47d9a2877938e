// Computes the token ids of a prompt like the replicas, for the index of KV events.
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
  // tokenizer: of the replicas' model, with its chat template. Errors: an invalid template.
  static Result<PromptTokens> make(std::shared_ptr<const Tokenizer> tokenizer);

  // Writes the token ids of /v1/completions and /v1/chat/completions to `route`. Other requests, bodies above
  // 1 MiB and invalid bodies keep their estimate; the replica reports an invalid body.
  void write(const http::Request& request, RouteRequest& route) const;

  // Compares the number of tokens with the replica's number, and returns whether they are equal. After
  // several mismatches in a row, the replicas must have another tokenizer or template, and prompts keep their
  // estimates. Thread-safe.
  bool compare(std::size_t tokens, std::int64_t reported) const;

 private:
  explicit PromptTokens(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)), mismatches_(std::make_unique<std::atomic<int>>(0)) {}
  Result<std::vector<std::int32_t>> ids(const http::Request& request, bool chat,
                                        const RouteRequest& route) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplate> plain_, with_tools_;  // nullopt: the model has no template
  std::unique_ptr<std::atomic<int>> mismatches_;    // number of consecutive mismatches
};

}  // namespace octavo::fleet
