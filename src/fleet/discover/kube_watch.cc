#include "fleet/discover/kube_watch.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace octavo::fleet {
namespace {

constexpr int kTurnMs = 50;                       // behind a watch that has ended as it should
constexpr int kPauseMs = 500;                     // behind a failure; each one in a row twice as long,
constexpr int kPauseMsMax = 30'000;               // up to here
constexpr int kGlanceMs = 100;                    // how soon a watch sees that it is to stop
constexpr std::int64_t kSilenceUs = 400'000'000;  // more than a watch lasts: the connection is dead
constexpr std::size_t kLineBytesMax = 16 << 20;   // etcd's objects have 1.5 MiB

}  // namespace

KubeWatch::KubeWatch(KubeApi api, std::string path, std::string selector, KubeSink& sink)
    : api_(std::move(api)), mirror_(std::move(path), std::move(selector), sink), thread_([this] { run(); }) {}

KubeWatch::~KubeWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool KubeWatch::pause(int ms) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopped_; });
}

void KubeWatch::run() {
  bool failing = false;
  int pause_ms = 0;
  while (pause(pause_ms)) {
    const Result<> done = once();
    if (!done && !failing)
      log_warning("Kubernetes, {}: {}; what is known stays until it answers", mirror_.path(),
                  done.error().message);
    if (done && failing) log_info("Kubernetes, {}: answers again", mirror_.path());
    pause_ms = !failing ? kPauseMs : std::min(2 * pause_ms, kPauseMsMax);
    if (done) pause_ms = kTurnMs;
    failing = !done;
  }
}

Result<> KubeWatch::once() {
  TRY(KubeConnection connection, KubeConnection::open(api_));
  while (mirror_.listing()) {
    TRY(const http::Response answer, connection.request("GET", mirror_.target()));
    TRY_VOID(mirror_.page(answer.status, answer.body));
  }
  return watch(connection);
}

Result<> KubeWatch::watch(KubeConnection& connection) {
  TRY(const http::Response head, connection.stream(mirror_.target()));
  std::string unread;
  for (std::int64_t heard_us = now_us(); now_us() - heard_us < kSilenceUs;) {
    if (!pause(0)) return {};
    TRY(const std::optional<std::string> piece, connection.client().read_for(kGlanceMs));
    if (piece && piece->empty()) continue;
    if (!piece) return head.status == 200 ? Result<>() : mirror_.refused(head.status, unread);
    heard_us = now_us();
    unread += *piece;
    if (unread.size() > kLineBytesMax)
      return failure(ErrorCode::io, "an event of more than {} bytes", kLineBytesMax);
    if (head.status != 200) continue;
    for (std::size_t end = unread.find('\n'); end != std::string::npos; end = unread.find('\n')) {
      TRY_VOID(mirror_.line(std::string_view(unread).substr(0, end)));
      unread.erase(0, end + 1);
      if (mirror_.listing()) return {};
    }
  }
  return failure(ErrorCode::io, "nothing was heard for too long");
}

}  // namespace octavo::fleet
