#include "fleet/discover/kube_watch.h"

#include <string>
#include <utility>

#include "base/clock.h"

namespace octavo::fleet {
namespace {

constexpr int kIntervalMs = 50;  // pause after the normal end of a watch
constexpr int kGlanceMs = 100;  // interval at which a watch checks whether the thread must stop
// A connection without data for this time, which exceeds the duration of a watch, is broken.
constexpr std::int64_t kSilenceUs = 400'000'000;
constexpr std::size_t kLineBytesMax = 16 << 20;  // an object in etcd has at most 1.5 MiB

}  // namespace

KubeWatch::KubeWatch(KubeApi api, std::string path, std::string selector, KubeSink& sink)
    : api_(std::move(api)),
      mirror_(std::move(path), std::move(selector), sink),
      follower_({.source = "Kubernetes, " + mirror_.path(), .interval_ms = kIntervalMs},
                [this] { return once(); }) {}

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
  for (std::int64_t received_us = now_us(); now_us() - received_us < kSilenceUs;) {
    if (follower_.stopped()) return {};
    TRY(const std::optional<std::string> piece, connection.client().read_for(kGlanceMs));
    if (piece && piece->empty()) continue;
    if (!piece) return head.status == 200 ? Result<>() : mirror_.refused(head.status, unread);
    received_us = now_us();
    unread += *piece;
    if (unread.size() > kLineBytesMax)
      return failure(ErrorCode::io, "an event has more than {} bytes", kLineBytesMax);
    if (head.status != 200) continue;
    for (std::size_t end = unread.find('\n'); end != std::string::npos; end = unread.find('\n')) {
      TRY_VOID(mirror_.line(std::string_view(unread).substr(0, end)));
      unread.erase(0, end + 1);
      if (mirror_.listing()) return {};
    }
  }
  return failure(ErrorCode::io, "the watch sent nothing for too long");
}

}  // namespace octavo::fleet
