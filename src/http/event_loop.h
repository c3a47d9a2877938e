// A thread with an event loop, which runs connections of a server, of a client, or of both.
#pragma once

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>

namespace octavo::http {

class EventLoop {
 public:
  // After each group of events, the thread sleeps for pause_ms, so that it handles the next events together.
  explicit EventLoop(std::size_t number, int pause_ms = 0);
  ~EventLoop();

  boost::asio::io_context& io() { return io_; }
  std::size_t number() const { return number_; }           // index among the loops of its owner
  // buffer for input that is processed before the next read
  std::array<char, 65536>& scratch() { return scratch_; }

  void start();
  // Runs `work` on the loop and waits for it. Do not call it on the loop's thread.
  void run(const std::function<void()>& work);
  // Waits until the thread ends. It ends when it has no work.
  void join();

 private:
  const std::size_t number_;
  const std::chrono::milliseconds pause_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  std::array<char, 65536> scratch_{};
  std::thread thread_;
};

}  // namespace octavo::http
