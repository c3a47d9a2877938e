// grpc.health.v1: Check. There is no Watch.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "grpc/call.h"

namespace octavo::grpc {

// What health checks are told of each service. Any thread.
class Health {
 public:
  void set(std::string_view service, bool serving);
  // Of those that were set; nothing: it is not known.
  std::optional<bool> serving(std::string_view service) const;
  void stop();  // none serves any more

 private:
  mutable std::mutex mutex_;
  std::map<std::string, bool, std::less<>> services_;
};

inline constexpr std::string_view kHealthCheck = "/grpc.health.v1.Health/Check";
// `health` outlives the calls.
Method health_check(const Health& health);

}  // namespace octavo::grpc
