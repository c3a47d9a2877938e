// Tokenises a prompt by a request to a server that renders prompts: vLLM or `octavo serve`.
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
  // nullopt: use an endpoint of the pool, since vLLM's and Octavo's servers can tokenise.
  std::optional<http::Address> address = http::Address{.host = "localhost", .port = 8000};
  std::string model = {};
  int timeout_ms = 5'000;
  int media_timeout_ms = 30'000;  // used if a message has media parts
};

// Must outlive the client of its loop. Safe from any thread.
class PromptRenderer {
 public:
  // nullopt: no answer, or an answer without tokens.
  using Then = std::function<void(std::optional<std::vector<std::uint32_t>> tokens)>;

  // any_endpoint: returns the address of an available endpoint; nullopt: none.
  PromptRenderer(http::ClientLoop& loop, RenderSource source,
                 std::function<std::optional<http::Address>()> any_endpoint = {})
      : loop_(loop), source_(std::move(source)), any_endpoint_(std::move(any_endpoint)) {}

  // path: path of a route that renders. body: a JSON object. `then` is called once, on the loop's thread.
  void render(std::string_view path, std::string_view body, Then then);

 private:
  http::ClientLoop& loop_;
  const RenderSource source_;
  const std::function<std::optional<http::Address>()> any_endpoint_;
};

}  // namespace octavo::fleet
