// SageMaker's stateful sessions: a client creates a session, sends the session's id with requests, and closes
// the session. SageMaker routes all requests of a session to the same server.
// https://docs.aws.amazon.com/sagemaker/latest/dg/stateful-sessions.html
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/error.h"

namespace octavo {

// Any thread may call the functions. Times are in seconds since 1970.
class SageMakerSessions {
 public:
  static constexpr std::size_t kSessionsMax = 65'536;

  struct Created {
    std::string id;
    std::int64_t expires_s;
  };

  explicit SageMakerSessions(std::int64_t lifetime_s) : lifetime_s_(lifetime_s) {}

  // Returns resource_exhausted if kSessionsMax sessions exist. Expired sessions do not count.
  Result<Created> create(std::int64_t now_s);
  // Returns invalid_argument if the session does not exist or has expired.
  Result<> check(const std::string& id, std::int64_t now_s);
  Result<> close(const std::string& id, std::int64_t now_s);

 private:
  Result<> find(const std::string& id, std::int64_t now_s);  // call it with mutex_ locked

  const std::int64_t lifetime_s_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::int64_t> expires_s_;
};

}  // namespace octavo
