// Tokenises prompts with the /render endpoints of a server, which is vLLM or `octavo serve`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/async_client.h"

namespace octavo::fleet {

struct RenderSource {
  // server that tokenises; nullopt: any endpoint of the pool, because vLLM and Octavo have /render
  std::optional<http::Address> address = http::Address{.host = "localhost", .port = 8000};
  std::string model = {};
  int timeout_ms = 5'000;
  int media_timeout_ms = 30'000;  // timeout of prompts with images, videos or audio
};

// Thread-safe. Must outlive the AsyncClient that owns `loop`.
class PromptRenderer {
 public:
  // Called with the tokens. nullopt: the server did not respond, or sent no tokens.
  using Then = std::function<void(std::optional<std::vector<std::uint32_t>> tokens)>;

  // `any_endpoint` returns the address of an available endpoint, or nullopt if none is available.
  PromptRenderer(http::ClientLoop& loop, RenderSource source,
                 std::function<std::optional<http::Address>()> any_endpoint = {})
      : loop_(loop), source_(std::move(source)), any_endpoint_(std::move(any_endpoint)) {}

  // Renders a prompt, and calls `then` once on the loop's thread. `path` must be a route that can be
  // rendered. `body` is a JSON object.
  void render(std::string_view path, std::string_view body, Then then);

 private:
  http::ClientLoop& loop_;
  const RenderSource source_;
  const std::function<std::optional<http::Address>()> any_endpoint_;
};

}  // namespace octavo::fleet
