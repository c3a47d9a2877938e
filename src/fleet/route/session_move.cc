#include "fleet/route/session_move.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/log.h"
#include "base/quoted_text.h"
#include "openai/session_path.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kNextPiece = "X-Octavo-Next-Piece";
constexpr std::size_t kPartBytesMax = 64 << 20;
constexpr int kConnectMs = 1'000;  // short, because the old worker may have ended

// Fields that describe the body or the time of the client's request.
constexpr std::array<std::string_view, 4> kOfTheRequest{"Content-Type", "Content-Encoding", "Accept",
                                                        "X-Request-Timeout"};

class SessionMove : public std::enable_shared_from_this<SessionMove> {
 public:
  SessionMove(http::ClientLoop& loop, SessionMoveOptions options, std::function<void(bool)> done)
      : loop_(loop), options_(std::move(options)), done_(std::move(done)) {
    for (const auto& [name, value] : options_.headers)
      if (std::ranges::none_of(kOfTheRequest,
                               [&](std::string_view own) { return http::equal_ignoring_case(own, name); }))
        headers_.add(name, value);
  }

  void export_from(int first) {
    call(*options_.from, "GET", "/export?first=" + std::to_string(first), nullptr,
         [first](SessionMove& move, http::Response part) { move.exported(first, std::move(part)); });
  }

 private:
  using Next = std::function<void(SessionMove&, http::Response)>;

  void exported(int first, http::Response part) {
    if (part.status != 200) return end(false, "export", part);
    const std::string_view next = part.headers.find(kNextPiece).value_or("0");
    int piece = 0;
    std::from_chars(next.data(), next.data() + next.size(), piece);
    if (piece != 0 && piece <= first) return end(false, "export", part);
    call(*options_.to, "POST", "/import", std::make_shared<const std::string>(std::move(part.body)),
         [piece](SessionMove& move, http::Response answer) {
           if (answer.status != 200) return move.end(false, "import", answer);
           if (piece != 0) return move.export_from(piece);
           move.call(*move.options_.from, "DELETE", "", nullptr, [](SessionMove&, http::Response) {});
           move.end(true, "import", answer);
         });
  }

  // Calls a route of the session, and then `next`. If there is no response, `next` gets a response with the
  // status 502.
  void call(const Endpoint& worker, std::string method, const std::string& action,
            std::shared_ptr<const std::string> body, Next next) {
    const auto answer = std::make_shared<http::Response>();
    http::CallRequest request{.address = *http::parse_base_url(worker.url),
                              .method = std::move(method),
                              .target = fmt::format("{}/{}{}", openai::kSessionsPath,
                                                    openai::encoded_session_id(options_.session), action),
                              .headers = headers_,
                              .body = std::move(body),
                              .connect_ms = kConnectMs,
                              .timeout_ms = options_.timeout_ms};
    if (request.body) request.headers.add("Content-Type", "application/octet-stream");
    loop_.call(std::move(request),
               {.head = [answer](http::Response head) { *answer = std::move(head); },
                .body =
                    [answer](std::string_view piece) {
                      answer->body +=
                          piece.substr(0, kPartBytesMax - std::min(kPartBytesMax, answer->body.size()));
                    },
                .end =
                    [self = shared_from_this(), answer, next = std::move(next)](const Result<>& result) {
                      if (!result) *answer = {.status = 502, .body = result.error().message};
                      next(*self, std::move(*answer));
                    }});
  }

  void end(bool moved, std::string_view step, const http::Response& answer) {
    if (moved)
      log_info("session {} moved from {} to {}", quoted_text(options_.session), options_.from->url,
               options_.to->url);
    else
      log_warning(
          "session {} was not moved from {} to {}, so its next turn computes its blocks: the {} returned "
          "status {}: {}",
          quoted_text(options_.session), options_.from->url, options_.to->url, step, answer.status,
          std::string_view(answer.body).substr(0, 200));
    done_(moved);
  }

  http::ClientLoop& loop_;
  const SessionMoveOptions options_;
  const std::function<void(bool)> done_;
  http::Headers headers_;
};

}  // namespace

void move_session(http::ClientLoop& loop, SessionMoveOptions options, std::function<void(bool moved)> done) {
  std::make_shared<SessionMove>(loop, std::move(options), std::move(done))->export_from(0);
}

}  // namespace octavo::fleet
