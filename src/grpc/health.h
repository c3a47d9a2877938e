// Health service grpc.health.v1: only Check, without Watch.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "grpc/call.h"

namespace octavo::grpc {

// The reported health of each service. Safe from any thread.
class Health {
 public:
  void set(std::string_view service, bool serving);
  // nullopt: unknown service.
  std::optional<bool> serving(std::string_view service) const;
  void stop();  // all services report NOT_SERVING from now on

 private:
  mutable std::mutex mutex_;
  std::map<std::string, bool, std::less<>> services_;
};

inline constexpr std::string_view kHealthCheck = "/grpc.health.v1.Health/Check";
// `health` must outlive the calls.
Method health_check(const Health& health);

}  // namespace octavo::grpc
