// Fuzzer: any template with a small conversation gives a text or an error within the limits.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/chat_template.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octavo;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const std::vector<SpecialToken> tokens = {{"bos_token", "<s>"}};
  const ChatTemplateLimits limits{.output_bytes = 1u << 16, .fuel = 10'000, .built_bytes = 1u << 20};
  const Result<ChatTemplate> chat = ChatTemplate::compile(source, tokens, limits);
  if (!chat) return 0;
  const Result<std::string> text = chat->render(
      {.messages =
           R"([{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"n":1.5}]}])",
       .tools = R"([{"type":"function","function":{"name":"f"}}])",
       .now = {}});
  if (text) {
    CHECK(text->size() <= limits.output_bytes, "{} bytes", text->size());
    CHECK(!invalid_utf8_at(*text), "not UTF-8");
  } else {
    CHECK(text.error().code != ErrorCode::internal, "{}", text.error().message);
  }
  return 0;
}
