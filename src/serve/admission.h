// Limits how much memory and how many queue slots all clients together, and each single client, may use.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "http/body_budget.h"

namespace octavo {

// The resources that a request uses from its admission to its end.
struct Price {
  int answers = 0;         // number of answers: n times the number of prompts
  std::int64_t bytes = 0;  // memory of the sequences and of the requested log-probabilities

  Price& operator+=(const Price& other) {
    answers += other.answers;
    bytes += other.bytes;
    return *this;
  }
  Price& operator-=(const Price& other) {
    answers -= other.answers;
    bytes -= other.bytes;
    return *this;
  }
};

// A budget for all requests, and a smaller budget for each client, so that one client cannot use up the
// server.
class Admission {
 public:
  // shared_bytes: budget for the bytes of several Admissions together; null: only `budget` applies
  Admission(const Price& budget, const Price& client_max, std::shared_ptr<http::BodyBudget> shared_bytes = {},
            std::function<std::int64_t()> clock_us = now_us)
      : budget_(budget),
        client_max_(client_max),
        shared_bytes_(std::move(shared_bytes)),
        clock_us_(std::move(clock_us)) {}

  // The resources that a request holds. The destructor returns them. The Admission must outlive the ticket.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept
        : admission_(std::exchange(other.admission_, nullptr)),
          client_(std::move(other.client_)),
          held_(std::exchange(other.held_, {})) {}
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(admission_, other.admission_);
      std::swap(client_, other.client_);
      std::swap(held_, other.held_);
      return *this;
    }
    ~Ticket();

    // Reserves more memory. Returns false and reserves nothing if this exceeds the budget of all clients or
    // of this client.
    bool grow(std::int64_t bytes);
    void give_back_answer();

   private:
    friend class Admission;
    Ticket(Admission& admission, std::string client, const Price& held)
        : admission_(&admission), client_(std::move(client)), held_(held) {
      ++admission_->tickets_;
    }

    Admission* admission_ = nullptr;
    std::string client_;
    Price held_;
  };

  // Returns invalid_argument if the price exceeds the budget of one client. The message names the field and
  // the limit.
  Result<> possible(const Price& price) const;

  // Reserves the resources of a request. Returns the errors of possible(), or resource_exhausted if other
  // requests use too many resources now. Any thread may call it.
  Result<Ticket> admit(const std::string& client, const Price& price);

  Price used() const;
  int tickets() const { return tickets_; }

  // Estimates the seconds until a request of this price fits, in [1, 60], from the rate at which answers
  // end.
  int retry_after_s(const Price& price) const;

  // number of session commands whose result is still missing
  std::atomic<int>& session_commands() { return session_commands_; }

 private:
  bool take(const std::string& client, const Price& price);
  void give_back(const std::string& client, const Price& price);
  void count_ends(int answers);

  const Price budget_, client_max_;
  const std::shared_ptr<http::BodyBudget> shared_bytes_;
  const std::function<std::int64_t()> clock_us_;
  std::atomic<int> tickets_ = 0;
  std::atomic<int> session_commands_ = 0;
  mutable std::mutex mutex_;
  Price used_;
  std::int64_t last_end_us_ = 0;
  std::int64_t busy_since_us_ = 0;  // time of the last admission before which no answer was running
  double seconds_an_answer_ = 0;    // moving average of the time between the ends of consecutive answers
  std::unordered_map<std::string, Price> clients_;
};

}  // namespace octavo
