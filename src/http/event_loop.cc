#include "http/event_loop.h"

#include <boost/asio/post.hpp>
#include <future>

#include "base/check.h"
#include "base/processors.h"

namespace octavo::http {

EventLoop::EventLoop(std::size_t number) : number_(number) {}
EventLoop::~EventLoop() { CHECK(!thread_.joinable()); }

void EventLoop::start() {
  thread_ = std::thread([this] {
    shorten_slice();
    io_.run();
  });
}

void EventLoop::run(const std::function<void()>& work) {
  std::promise<void> done;
  boost::asio::post(io_, [&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

void EventLoop::join() {
  work_.reset();
  if (thread_.joinable()) thread_.join();
}

}  // namespace octavo::http
