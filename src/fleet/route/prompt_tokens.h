// The token ids of a prompt, equal to the replica's, to look the prompt up in the index of KV events.
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
  // The tokenizer of the replicas' model, with its own chat template. Errors: an invalid template.
  static Result<PromptTokens> make(std::shared_ptr<const Tokenizer> tokenizer);

  // Writes the ids of /v1/completions and /v1/chat/completions into `route`. Other requests, bodies above
  // 1 MiB and invalid bodies keep their estimate: the replica reports the mistake.
  void write(const http::Request& request, RouteRequest& route) const;

  // Compares the number of tokens with the replica's. After several different counts in a row, the tokenizer
  // or its template is wrong for the replicas: prompts keep their estimates from then on. Returns whether
  // the counts are equal. Safe from any thread.
  bool compare(std::size_t tokens, std::int64_t reported) const;

 private:
  explicit PromptTokens(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)), mismatches_(std::make_unique<std::atomic<int>>(0)) {}
  Result<std::vector<std::int32_t>> ids(const http::Request& request, bool chat,
                                        const RouteRequest& route) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplate> plain_, with_tools_;  // empty if the model has none
  std::unique_ptr<std::atomic<int>> mismatches_;    // in a row
};

}  // namespace octavo::fleet
