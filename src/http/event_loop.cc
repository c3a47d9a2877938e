#include "http/event_loop.h"

#include <boost/asio/post.hpp>
#include <future>

#include "base/check.h"
#include "base/processors.h"

namespace octavo::http {

EventLoop::EventLoop(std::size_t number, int pause_ms) : number_(number), pause_(pause_ms) {}
EventLoop::~EventLoop() { CHECK(!thread_.joinable()); }

void EventLoop::start() {
  thread_ = std::thread([this] {
    shorten_slice();
    if (pause_.count() == 0) {
      io_.run();
      return;
    }
    while (io_.run_one() > 0) {
      io_.poll();
      std::this_thread::sleep_for(pause_);
    }
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
