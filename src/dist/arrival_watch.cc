#include "dist/arrival_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace octavo {

Result<std::unique_ptr<ArrivalWatch>> ArrivalWatch::start(std::span<const int> sockets,
                                                          std::function<void()> wake) {
  std::unique_ptr<ArrivalWatch> watch(new ArrivalWatch);
  watch->sockets_.assign(sockets.begin(), sockets.end());
  watch->wake_ = std::move(wake);
  watch->epoll_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  watch->stop_ = Socket(eventfd(0, EFD_CLOEXEC));
  const auto add = [&](int fd, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.fd = fd}};
    return epoll_ctl(watch->epoll_.fd(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  bool added = add(watch->stop_.fd(), EPOLLIN);
  for (const int socket : sockets) added = added && add(socket, EPOLLONESHOT);  // added, but not armed
  if (!added)
    return failure(ErrorCode::io, "cannot watch {} sockets: {}", sockets.size(), std::strerror(errno));
  watch->thread_ = std::thread([w = watch.get()] { w->run(); });
  return watch;
}

ArrivalWatch::~ArrivalWatch() {
  const std::uint64_t one = 1;
  if (!thread_.joinable()) return;
  (void)!write(stop_.fd(), &one, sizeof one);
  thread_.join();
}

void ArrivalWatch::arm() {
  for (const int socket : sockets_) {
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data = {.fd = socket}};
    epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, socket, &event);
  }
}

void ArrivalWatch::run() {
  for (epoll_event event{};;) {
    if (epoll_wait(epoll_.fd(), &event, 1, -1) != 1) continue;
    if (event.data.fd == stop_.fd()) return;
    wake_();
  }
}

}  // namespace octavo
