// For tests: a Redis server in this process that can return errors and wrong data.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "transfer/peer_socket.h"

namespace octavo {

class TestRedis {
 public:
  enum class Mood : std::uint8_t {
    good,
    lying,     // reports every key as stored, but returns wrong values
    full,      // rejects all writes
    silent,    // never responds
    nonsense,  // responds in another protocol
  };

  TestRedis() : listening_(listen_at("127.0.0.1", port_).value()) {
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~TestRedis() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (const PeerSocket& socket : sockets_) socket.interrupt();
    }
    shutdown(listening_, SHUT_RDWR);
    accepting_.join();
    for (std::thread& thread : threads_) thread.join();
    close(listening_);
  }

  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  std::atomic<Mood> mood = Mood::good;
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }
  template <class Change>
  void spoil(Change&& change) {
    const std::lock_guard lock(mutex_);
    for (auto& [key, value] : values_) change(value);
  }
  // Closes the connections of waiting clients.
  void hang_up() {
    const std::lock_guard lock(mutex_);
    for (const PeerSocket& socket : sockets_) socket.interrupt();
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    values_.clear();
  }

 private:
  void accept_all() {
    for (;;) {
      const int fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(mutex_);
      if (stopping_ || fd < 0) {
        if (fd >= 0) close(fd);
        return;
      }
      PeerSocket& socket = sockets_.emplace_back(fd);
      threads_.emplace_back([this, &socket] { serve(socket); });
    }
  }

  static Result<std::string> line(PeerSocket& socket) {
    std::string text;
    while (!text.ends_with("\r\n")) {
      std::byte next{};
      TRY_VOID(socket.receive(std::span(&next, 1)));
      text.push_back(static_cast<char>(next));
    }
    return text.substr(0, text.size() - 2);
  }
  static Result<std::vector<std::string>> command(PeerSocket& socket) {
    TRY(const std::string head, line(socket));
    std::vector<std::string> parts;
    for (int i = std::stoi(head.substr(1)); i > 0; --i) {
      TRY(const std::string size, line(socket));
      std::string part(std::stoul(size.substr(1)) + 2, '\0');
      TRY_VOID(socket.receive(std::as_writable_bytes(std::span(part))));
      parts.push_back(part.substr(0, part.size() - 2));
    }
    return parts;
  }

  // Serves one connection. As a real server does, it closes a connection that is idle for too long.
  void serve(PeerSocket& socket) {
    for (;;) {
      const auto parts = command(socket);
      if (!parts) return socket.interrupt();
      if (mood == Mood::silent) continue;
      const std::string reply = mood == Mood::nonsense ? "HTTP/1.1 400 Bad Request\r\n" : answer(*parts);
      if (!socket.send(std::as_bytes(std::span(reply)))) return;
    }
  }

  std::string answer(const std::vector<std::string>& parts) {
    const std::lock_guard lock(mutex_);
    const bool lying = mood == Mood::lying && !values_.empty();
    const auto found = parts.size() < 2 ? values_.end() : values_.find(parts[1]);
    if (parts[0] == "EXISTS") return lying || found != values_.end() ? ":1\r\n" : ":0\r\n";
    if (parts[0] == "GET") {
      const auto given = lying ? values_.begin() : found;
      if (given == values_.end()) return "$-1\r\n";
      return "$" + std::to_string(given->second.size()) + "\r\n" + given->second + "\r\n";
    }
    if (parts[0] == "SET") {
      if (mood == Mood::full) return "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
      values_[parts[1]] = parts[2];
      return "+OK\r\n";
    }
    if (parts[0] == "DEL") {
      for (std::size_t i = 1; i < parts.size(); ++i) values_.erase(parts[i]);
      return ":1\r\n";
    }
    return "-ERR unknown command\r\n";
  }

  int port_ = 0;
  int listening_;
  std::mutex mutex_;  // guards all members below
  std::map<std::string, std::string> values_;
  std::list<PeerSocket> sockets_;
  std::list<std::thread> threads_;
  bool stopping_ = false;

  std::thread accepting_;
};

}  // namespace octavo
