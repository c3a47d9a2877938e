// Limits the resources that all clients together, and each client, may use at a time.
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

namespace octavo {

// Resources of a running request.
struct Price {
  int answers = 0;         // n times prompts: places in the engine's queue
  std::int64_t bytes = 0;  // memory of its sequences, and of the log-probabilities that it asks for

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

// One budget for all requests and a smaller one per client, so that no client fills the server.
class Admission {
 public:
  Admission(const Price& budget, const Price& client_max, std::function<std::int64_t()> clock_us = now_us)
      : budget_(budget), client_max_(client_max), clock_us_(std::move(clock_us)) {}

  // A request's share of the budget, returned by the destructor. The admission must outlive it.
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

    // Takes more memory. False: the budget or the client's share is used up; nothing is taken.
    bool grow(std::int64_t bytes);
    // Returns the share of an answer that has ended.
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

  // Checks that a request of this price can ever be admitted. Error (invalid_argument, with field and limit):
  // it exceeds one client's budget.
  Result<> possible(const Price& price) const;

  // Any thread. Errors: as possible(); resource_exhausted if too much is in use now.
  Result<Ticket> admit(const std::string& client, const Price& price);

  Price used() const;
  // Number of requests with a ticket.
  int tickets() const { return tickets_; }

  // Estimated seconds until a refused request fits, from the rate at which answers end: 1 to 60.
  int retry_after_s(const Price& price) const;

 private:
  bool take(const std::string& client, const Price& price);
  void give_back(const std::string& client, const Price& price);
  void count_ends(int answers);

  const Price budget_, client_max_;
  const std::function<std::int64_t()> clock_us_;
  std::atomic<int> tickets_ = 0;
  mutable std::mutex mutex_;
  Price used_;
  std::int64_t last_end_us_ = 0;                    // of an answer
  std::int64_t busy_since_us_ = 0;                  // when the first answer of those held now came
  double seconds_an_answer_ = 0;                    // between two ends, lately
  std::unordered_map<std::string, Price> clients_;  // those that hold something
};

}  // namespace octavo
