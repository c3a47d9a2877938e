#include "fleet/pick/prompt_renderer.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>

#include "fleet/pick/model_rewriting.h"
#include "openai/routes.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::size_t kAnswerBytesMax = 64 << 20;

// Returns the tokens of a chat, or of a completion's first prompt.
std::optional<std::vector<std::uint32_t>> tokens_of(const std::string& answer) {
  boost::system::error_code error;
  const json::value reply = json::parse(answer, error);
  if (error) return std::nullopt;
  const bool several = reply.is_array() && !reply.get_array().empty();
  const json::value& prompt = several ? reply.get_array()[0] : reply;
  const auto* ids = prompt.is_object() ? prompt.get_object().if_contains("token_ids") : nullptr;
  if (!ids || !ids->is_array()) return std::nullopt;
  std::vector<std::uint32_t> tokens;
  for (const json::value& id : ids->get_array()) {
    tokens.push_back(id.to_number<std::uint32_t>(error));
    if (error) return std::nullopt;
  }
  return tokens;
}

}  // namespace

void PromptRenderer::render(std::string_view path, std::string_view body, Then then) {
  const std::optional<http::Address> address =
      source_.address || !any_endpoint_ ? source_.address : any_endpoint_();
  if (!address) return loop_.post([then = std::move(then)] { then(std::nullopt); });
  const bool parts = body.find("\"content\":[") != body.npos || body.find("\"content\": [") != body.npos;
  http::CallRequest request{.address = *address,
                            .method = "POST",
                            .target = std::string(openai::find_route(path)->path) + "/render",
                            .body = std::make_shared<const std::string>(
                                source_.model.empty() ? std::string(body) : with_model(body, source_.model)),
                            .timeout_ms = parts ? source_.media_timeout_ms : source_.timeout_ms};
  request.headers.add("Content-Type", "application/json");
  loop_.post([this, request = std::move(request), then = std::move(then)]() mutable {
    const auto answer = std::make_shared<http::Response>();
    loop_.call(std::move(request),
               {.head = [answer](http::Response head) { *answer = std::move(head); },
                .body =
                    [answer](std::string_view piece) {
                      if (answer->body.size() + piece.size() <= kAnswerBytesMax) answer->body += piece;
                    },
                .end =
                    [answer, then = std::move(then)](const Result<>& result) {
                      then(result && answer->status == 200 ? tokens_of(answer->body) : std::nullopt);
                    }});
  });
}

}  // namespace octavo::fleet
