// Watches sockets on a separate thread while their owner is idle.
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
  // wake: called on the watch's thread. Error (io): the system refuses the descriptors.
  static Result<std::unique_ptr<ArrivalWatch>> start(std::span<const int> sockets,
                                                     std::function<void()> wake);
  ~ArrivalWatch();

  // Reports the next time that a socket has data or is closed: one call of `wake` for each socket.
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
