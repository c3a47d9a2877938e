// A thread that watches sockets while their owner is idle.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "dist/tcp_socket.h"

namespace octavo {

class ArrivalWatch {
 public:
  // `wake` is called on the watch's thread. Returns an io error if the operating system rejects the
  // descriptors.
  static Result<std::unique_ptr<ArrivalWatch>> start(std::span<const int> sockets,
                                                     std::function<void()> wake);
  ~ArrivalWatch();

  // Calls `wake` once for each socket, the next time that it has data or is closed.
  void arm();

 private:
  ArrivalWatch() = default;
  void run();

  std::vector<int> sockets_;
  std::function<void()> wake_;
  Socket epoll_, stop_;
  std::thread thread_;
};

}  // namespace octavo
