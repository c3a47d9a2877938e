// The health service grpc.health.v1. It implements Check, but not Watch.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "grpc/call.h"

namespace octavo::grpc {

// The health of each service. Thread-safe.
class Health {
 public:
  void set(std::string_view service, bool serving);
  // Returns nullopt for an unknown service.
  std::optional<bool> serving(std::string_view service) const;
  void stop();  // all services report NOT_SERVING

 private:
  mutable std::mutex mutex_;
  std::map<std::string, bool, std::less<>> services_;
};

inline constexpr std::string_view kHealthCheck = "/grpc.health.v1.Health/Check";
// health must outlive the calls.
Method health_check(const Health& health);

}  // namespace octavo::grpc
