// A thread that runs connections of a server, of a client, or of both.
#pragma once

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <thread>

namespace octavo::http {

class EventLoop {
 public:
  explicit EventLoop(std::size_t number);
  ~EventLoop();

  boost::asio::io_context& io() { return io_; }
  std::size_t number() const { return number_; }           // index among its owner's loops
  std::array<char, 65536>& scratch() { return scratch_; }  // buffer for input that is processed immediately

  void start();
  // Runs `work` on the loop and waits for it. Called from another thread.
  void run(const std::function<void()>& work);
  // Waits until no work is left and the thread has ended.
  void join();

 private:
  const std::size_t number_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  std::array<char, 65536> scratch_{};
  std::thread thread_;
};

}  // namespace octavo::http
