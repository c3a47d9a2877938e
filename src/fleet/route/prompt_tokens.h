// A prompt's tokens as its replica has them, to find it in the index of KV events.
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
  // The tokenizer of the replicas' model, with its own chat template. Errors: a template that is none.
  static Result<PromptTokens> make(std::shared_ptr<const Tokenizer> tokenizer);

  // Writes the ids of /v1/completions and /v1/chat/completions into `route`. What is none, or longer than a
  // megabyte, or wrong in any way keeps its estimate: the replica says what is wrong.
  void write(const http::Request& request, RouteRequest& route) const;

  // A replica has counted a prompt of this number of tokens. After several prompts in a row that it counted
  // otherwise, the tokenizer or its template is not the replicas': prompts keep their estimates from then on.
  // False: another count. Safe from any thread.
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
