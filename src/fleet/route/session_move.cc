#include "fleet/route/session_move.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <charconv>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "openai/session_path.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kNextPiece = "X-Octavo-Next-Piece";
constexpr std::size_t kPartBytesMax = 64 << 20;
constexpr int kConnectMs = 1'000;  // short, because the old worker may have ended

// Headers that concern only the client's request, not the calls of the move.
constexpr std::array<std::string_view, 4> kOfTheRequest{"Content-Type", "Content-Encoding", "Accept",
                                                        "X-Request-Timeout"};

// Returns whether a worker that has imported the last part can use the session.
bool is_retained(std::string_view answer) {
  boost::system::error_code wrong;
  const boost::json::value session = boost::json::parse(answer, wrong);
  const boost::json::object* object = wrong ? nullptr : session.if_object();
  const boost::json::value* state = object ? object->if_contains("state") : nullptr;
  return state && state->is_string() && state->get_string() == "retained";
}

class SessionMove : public std::enable_shared_from_this<SessionMove> {
 public:
  SessionMove(http::ClientLoop& loop, SessionMoveOptions options, std::function<void(bool)> done)
      : loop_(loop),
        options_(std::move(options)),
        deadline_us_(now_us() + std::int64_t{1'000} * options_.timeout_ms),
        done_(std::move(done)) {
    for (const auto& [name, value] : options_.headers)
      if (std::ranges::none_of(kOfTheRequest,
                               [&](std::string_view own) { return http::equal_ignoring_case(own, name); }))
        headers_.add(name, value);
  }

  void export_from(int first) {
    call(*options_.from, "GET", "/export?first=" + std::to_string(first), nullptr,
         [first](SessionMove& move, http::Response part) { move.exported(first, std::move(part)); });
  }

  void cancel() {
    if (!done_) return;
    if (const auto call = call_.lock()) call->cancel();
    end(false, "router", {.status = 499, .body = "the client has disconnected"});
  }

 private:
  using Next = std::function<void(SessionMove&, http::Response)>;

  void exported(int first, http::Response part) {
    if (part.status != 200) return end(false, "export", part);
    const auto next = part.headers.find(kNextPiece);
    int piece = 0;  // first piece of the next part; 0: this is the last part
    if (next) {
      const auto [rest, error] = std::from_chars(next->data(), next->data() + next->size(), piece);
      if (error != std::errc{} || rest != next->data() + next->size() || piece <= first)
        return end(false, "export",
                   {.status = 502, .body = fmt::format("{} is {}", kNextPiece, quoted_text(*next))});
    }
    call(*options_.to, "POST", "/import", std::make_shared<const std::string>(std::move(part.body)),
         [piece](SessionMove& move, http::Response answer) {
           if (answer.status != 200) return move.end(false, "import", answer);
           if (piece != 0) return move.export_from(piece);
           if (!is_retained(answer.body)) return move.end(false, "import", answer);
           move.call(*move.options_.from, "DELETE", "", nullptr, [](SessionMove&, http::Response) {});
           move.end(true, "import", answer);
         });
  }

  // Calls a route of the session, and then `next`. If there is no response, `next` gets a response with the
  // status 502. Ends the move if its time is over.
  void call(const Endpoint& worker, std::string method, const std::string& action,
            std::shared_ptr<const std::string> body, Next next) {
    const std::int64_t left_ms = (deadline_us_ - now_us()) / 1'000;
    if (left_ms <= 0) {
      if (done_) end(false, "router", {.status = 504, .body = "the time for the move is over"});
      return;
    }
    const auto answer = std::make_shared<http::Response>();
    http::CallRequest request{.address = *http::parse_base_url(worker.url),
                              .method = std::move(method),
                              .target = fmt::format("{}/{}{}", openai::kSessionsPath,
                                                    openai::encoded_session_id(options_.session), action),
                              .headers = headers_,
                              .body = std::move(body),
                              .connect_ms = kConnectMs,
                              .timeout_ms = static_cast<int>(left_ms)};
    if (request.body) request.headers.add("Content-Type", "application/octet-stream");
    call_ = loop_.call(
        std::move(request),
        {.head = [answer](http::Response head) { *answer = std::move(head); },
         .body =
             [answer](std::string_view piece) {
               answer->body += piece.substr(0, kPartBytesMax - std::min(kPartBytesMax, answer->body.size()));
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
          "session {} was not moved from {} to {}: the {} failed with status {}: {}. The next turn computes "
          "the "
          "session's KV blocks again",
          quoted_text(options_.session), options_.from->url, options_.to->url, step, answer.status,
          std::string_view(answer.body).substr(0, 200));
    std::exchange(done_, {})(moved);
  }

  http::ClientLoop& loop_;
  const SessionMoveOptions options_;
  const std::int64_t deadline_us_;
  std::function<void(bool)> done_;    // empty after the end
  std::weak_ptr<http::Call> call_{};  // the newest call
  http::Headers headers_;
};

}  // namespace

std::function<void()> move_session(http::ClientLoop& loop, SessionMoveOptions options,
                                   std::function<void(bool moved)> done) {
  const auto move = std::make_shared<SessionMove>(loop, std::move(options), std::move(done));
  move->export_from(0);
  return [weak = std::weak_ptr(move)] {
    if (const auto running = weak.lock()) running->cancel();
  };
}

bool RunningMoves::begin(const std::string& session, Waiter waiter) {
  const std::lock_guard lock(mutex_);
  const auto [running, is_new] = waiters_.try_emplace(session);
  if (!is_new) running->second.push_back(std::move(waiter));
  return is_new;
}

void RunningMoves::end(const std::string& session, const std::string& worker) {
  std::vector<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    const auto running = waiters_.find(session);
    if (running == waiters_.end()) return;
    waiters = std::move(running->second);
    waiters_.erase(running);
  }
  for (const Waiter& waiter : waiters) waiter(worker);
}

void RunningMoves::clear() {
  const std::lock_guard lock(mutex_);
  waiters_.clear();
}

}  // namespace octavo::fleet
