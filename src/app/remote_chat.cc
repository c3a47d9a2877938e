#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "app/chat_backends.h"
#include "base/clock.h"
#include "http/client.h"
#include "http/sse.h"
#include "http/url.h"

namespace octavo {
namespace {

// Maximum time between two calls of ShowPiece, which may end the answer.
constexpr int kShowMs = 100;

using boost::json::object;
using boost::json::value;

std::string server_error(const http::Response& response) {
  boost::system::error_code wrong;
  const value body = boost::json::parse(response.body, wrong);
  const std::string_view message = wrong ? "" : text_at(body, "/error/message");
  return message.empty() ? response.body : std::string(message);
}

class RemoteChat final : public ChatBackend {
 public:
  RemoteChat(http::ClientOptions options, const std::string& api_key) : options_(std::move(options)) {
    if (!api_key.empty()) headers_.add("Authorization", "Bearer " + api_key);
  }

  Result<> find_model() {
    TRY(http::Client client, http::Client::connect(options_));
    TRY(const http::Response response, client.request("GET", "/v1/models", {}, headers_));
    if (response.status != 200)
      return failure(ErrorCode::io, "the server returned status {}: {}", response.status,
                     server_error(response));
    boost::system::error_code wrong;
    const value models = boost::json::parse(response.body, wrong);
    if (!wrong) model_ = text_at(models, "/data/0/id");
    if (model_.empty()) return failure(ErrorCode::io, "the server's list of models is invalid");
    return {};
  }

  std::string name() const override {
    return fmt::format("{} at {}", model_, http::host_and_port(options_.host, options_.port));
  }

  Result<Turn> answer(const object& request, const ShowPiece& show) override {
    object body = request;
    body["model"] = model_;
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    http::Headers headers = headers_;
    headers.add("Content-Type", "application/json");
    TRY(http::Client client, http::Client::connect(options_));
    const std::int64_t started = now_us();
    TRY_VOID(client.send("POST", "/v1/chat/completions", boost::json::serialize(body), headers));
    Turn turn;
    http::SseReader events;
    std::optional<http::Response> head;
    bool wanted = true;
    while ((wanted = wanted && show({Piece::Kind::text, ""}))) {
      if (!head) {
        TRY(head, client.head_for(kShowMs));
        if (!head) continue;
      }
      TRY(const std::optional<std::string> bytes, client.read_for(kShowMs));
      if (!bytes) break;
      if (head->status != 200) {
        head->body += *bytes;
        continue;
      }
      for (const std::string& event : events.push(*bytes)) {
        if (event == "[DONE]") break;
        TRY(wanted, turn.take(event, [&](const Piece& piece) {
          if (turn.first_s == 0) turn.first_s = static_cast<double>(now_us() - started) * 1e-6;
          return show(piece);
        }));
        if (!wanted) break;  // the server stops the answer when the client disconnects
      }
    }
    if (head && head->status != 200) return invalid("", "{}", server_error(*head));
    turn.all_s = static_cast<double>(now_us() - started) * 1e-6;
    return turn;
  }

 private:
  http::ClientOptions options_;
  http::Headers headers_;
  std::string model_;
};

}  // namespace

Result<std::unique_ptr<ChatBackend>> remote_chat(const std::string& url, const std::string& api_key) {
  TRY(const http::Url at, http::parse_url(url));
  auto chat = std::make_unique<RemoteChat>(
      http::ClientOptions{.host = at.host, .port = at.port, .tls = at.tls}, api_key);
  TRY_VOID(chat->find_model());
  return chat;
}

}  // namespace octavo
