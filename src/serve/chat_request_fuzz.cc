// Bodies of both endpoints, and of every message in them: any bytes give a request or an error, never a
// crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/completion_request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octavo;
  static const openai::RequestRules rules = [] {
    openai::RequestRules r;
    r.model_names = {"m"};
    r.limits.vocab_size = 1000;
    r.max_model_len = 4096;
    return r;
  }();
  const auto body = openai::parse_body({reinterpret_cast<const char*>(data), size});
  if (!body) return 0;
  if (const auto chat = openai::parse_chat_request(*body, rules)) {
    const SamplingParams& p = chat->generation.sampling;
    CHECK(p.n >= 1 && p.temperature >= 0 && p.temperature <= 2 && (!p.max_tokens || *p.max_tokens >= 1));
    CHECK(openai::parse_body("{\"m\":" + chat->prompt.messages + "}").has_value() || size > 60);
  }
  if (const auto completion = openai::parse_completion_request(*body, rules)) {
    CHECK(!completion->prompts.empty());
    const auto answers =
        static_cast<std::size_t>(completion->generation.sampling.n) * completion->prompts.size();
    CHECK(answers <= static_cast<std::size_t>(rules.limits.max_n));
  }
  return 0;
}
