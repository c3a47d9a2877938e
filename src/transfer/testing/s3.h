// For tests: an S3 store in this process that checks signatures and can return errors and wrong data.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/server.h"
#include "transfer/testing/redis.h"
#include "transfer/tiers/s3_signature.h"

namespace octavo {

class TestS3 {
 public:
  using Mood = TestRedis::Mood;

  TestS3() {
    server_ = http::Server::start({}, [this](std::shared_ptr<http::Exchange> exchange) {
                if (mood == Mood::silent) {
                  const std::lock_guard lock(mutex_);
                  unanswered_.push_back(std::move(exchange));
                  return;
                }
                exchange->respond(answer(exchange->request()));
              }).value();
  }
  ~TestS3() {
    {
      const std::lock_guard lock(mutex_);
      unanswered_.clear();
    }
    server_->stop(0);
  }

  std::string url() const { return server_->address() + "/bucket/some/prefix"; }
  StoreKeys keys() const { return {.access = "who", .secret = "secret", .session = "", .region = "eu-1"}; }
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
  void clear() {
    const std::lock_guard lock(mutex_);
    values_.clear();
  }

 private:
  static http::Response error(int status, const char* code) {
    return {.status = status,
            .content_type = "application/xml",
            .body = std::string("<Error><Code>") + code + "</Code></Error>"};
  }

  bool is_signed(const http::Request& request) const {
    std::tm parts{};
    const std::string time(request.headers.find("x-amz-date").value_or(""));
    if (strptime(time.c_str(), "%Y%m%dT%H%M%SZ", &parts) == nullptr) return false;
    const std::string host(request.headers.find("Host").value_or(""));
    const http::Headers expected = s3_headers({.method = request.method,
                                               .host = host,
                                               .path = request.path,
                                               .query = request.query,
                                               .body = std::as_bytes(std::span(request.body))},
                                              keys(), timegm(&parts));
    return request.headers.find("Authorization") == expected.find("Authorization");
  }

  http::Response answer(const http::Request& request) {
    if (mood == Mood::nonsense) return {.status = 302, .body = "elsewhere"};
    if (!is_signed(request)) return error(403, "SignatureDoesNotMatch");
    if (!request.path.starts_with("/bucket/some/prefix/octavo/kv/")) return error(404, "NoSuchBucket");
    const std::lock_guard lock(mutex_);
    const bool lying = mood == Mood::lying && !values_.empty();
    if (request.method == "PUT") {
      if (mood == Mood::full) return error(507, "InsufficientStorage");
      values_[request.path] = request.body;
      return {};
    }
    if (request.method == "DELETE") {
      values_.erase(request.path);
      return {.status = 204};
    }
    const auto found = lying ? values_.begin() : values_.find(request.path);
    if (found == values_.end()) return error(404, "NoSuchKey");
    return {.content_type = "application/octet-stream", .body = found->second};
  }

  std::mutex mutex_;  // guards all members below
  std::map<std::string, std::string> values_;
  std::vector<std::shared_ptr<http::Exchange>> unanswered_;

  std::unique_ptr<http::Server> server_;
};

}  // namespace octavo
