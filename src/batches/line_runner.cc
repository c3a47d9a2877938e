#include "batches/line_runner.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>

#include "base/clock.h"
#include "base/exact_json.h"
#include "http/target.h"

namespace octavo::batches {
namespace {

constexpr int kTriesAlone = 100;
constexpr std::int64_t kRetryUs = 50'000, kRetryMostUs = 10'000'000;

// Returns whether the error's `param` is "timeout": the line's own `timeout` field ended the request. A retry
// would end in the same way.
bool is_own_timeout(const std::string& body) {
  boost::system::error_code bad;
  const boost::json::value parsed = parse_exact_json(body, bad);
  const boost::json::value* error =
      !bad && parsed.is_object() ? parsed.get_object().if_contains("error") : nullptr;
  const boost::json::value* param =
      error != nullptr && error->is_object() ? error->get_object().if_contains("param") : nullptr;
  return param != nullptr && *param == "timeout";
}

http::Request request_of(const Line& line, const std::string& client, http::Request::Origin origin,
                         http::Headers headers) {
  http::Request request;
  request.headers = std::move(headers);
  request.method = "POST";
  const http::Target target = http::parse_target(line.url).value();  // read_line() has checked the URL
  request.path = target.path;
  request.encoded_path = target.encoded;
  request.query = target.query;
  request.headers.add("Content-Type", "application/json");
  request.body = *line.body;
  request.peer = client;
  request.origin = origin;
  return request;
}

}  // namespace

LineRunner::LineRunner(HostPtr host, http::Request::Origin origin)
    : host_(std::move(host)), origin_(origin) {}

LineRunner::~LineRunner() { close_all(); }

void LineRunner::start(Job job, std::string client) {
  const std::uint64_t id = ++last_id_;
  Open& open = open_[id] = {.job = std::move(job), .client = std::move(client), .exchange = nullptr};
  send(id, open);
}

void LineRunner::send(std::uint64_t id, Open& open) {
  open.exchange = std::make_shared<http::LocalExchange>(
      request_of(open.job.line, open.client, origin_, host_->line_headers()),
      [arrivals = arrivals_, id](http::Response response) {
        {
          const std::lock_guard lock(arrivals->mutex);
          arrivals->responses.emplace_back(id, std::move(response));
        }
        arrivals->changed.notify_one();
      });
  host_->send(open.exchange);
}

bool LineRunner::may_try_again(const http::Response& response) {
  if (response.status != 429 && (response.status != 503 || is_own_timeout(response.body))) return false;
  if (origin_ == http::Request::Origin::background) return true;
  return open() - retrying_ > 1 || ++tries_alone_ < kTriesAlone;
}

int LineRunner::ms_to_next_try(int ms) const {
  return retrying_ > 0 ? std::min(ms, static_cast<int>(kRetryUs / 1000)) : ms;
}

std::vector<LineRunner::Ended> LineRunner::wait(int ms) {
  std::vector<std::pair<std::uint64_t, http::Response>> responses;
  {
    std::unique_lock lock(arrivals_->mutex);
    arrivals_->changed.wait_for(lock, std::chrono::milliseconds(ms_to_next_try(ms)),
                                [&] { return arrivals_->woken || !arrivals_->responses.empty(); });
    arrivals_->woken = false;
    responses.swap(arrivals_->responses);
  }
  std::vector<Ended> ended;
  for (auto& [id, response] : responses) {
    const auto found = open_.find(id);
    if (found == open_.end()) continue;  // close() or close_all() has removed the line
    if (may_try_again(response)) {
      Open& open = found->second;
      open.exchange = nullptr;
      std::int64_t delay_us = kRetryUs;
      if (response.status == 503 && origin_ == http::Request::Origin::background)
        delay_us = std::min(kRetryMostUs, kRetryUs << std::min(open.unavailable++, 20));
      open.next_try_us = now_us() + delay_us;
      ++retrying_;
      continue;
    }
    tries_alone_ = 0;
    ended.push_back({std::move(found->second.job), std::move(response)});
    open_.erase(found);
  }
  for (auto& [id, open] : open_) {
    if (open.exchange || open.next_try_us > now_us()) continue;
    --retrying_;
    send(id, open);
  }
  return ended;
}

void LineRunner::close(const std::string& batch) {
  for (auto entry = open_.begin(); entry != open_.end();) {
    const auto next = std::next(entry);
    if (const Open& open = entry->second; open.job.batch == batch) {
      open.exchange ? open.exchange->close() : void(--retrying_);
      open_.erase(entry);
    }
    entry = next;
  }
}

void LineRunner::close_all() {
  for (auto& [id, open] : open_)
    if (open.exchange) open.exchange->close();
  open_.clear();
  retrying_ = 0;
}

void LineRunner::wake() {
  {
    const std::lock_guard lock(arrivals_->mutex);
    arrivals_->woken = true;
  }
  arrivals_->changed.notify_one();
}

}  // namespace octavo::batches
