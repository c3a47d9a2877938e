// A thread on which connections live: a server's, a client's, or both.
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
  std::size_t number() const { return number_; }           // among its owner's
  std::array<char, 65536>& scratch() { return scratch_; }  // for what is read and used at once

  void start();
  // From another thread: returns when `work` has run on the loop.
  void run(const std::function<void()>& work);
  // Lets the thread end when nothing is under way any more, and waits for that.
  void join();

 private:
  const std::size_t number_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  std::array<char, 65536> scratch_{};
  std::thread thread_;
};

}  // namespace octavo::http
