#include "grpc/health.h"

#include <optional>

namespace octavo::grpc {
namespace {

// Protocol Buffers tags: field number << 3 | wire type (0: number, 2: bytes with a length).
constexpr char kService = 1 << 3 | 2;  // HealthCheckRequest.service
constexpr char kStatus = 1 << 3 | 0;   // HealthCheckResponse.status
constexpr char kServing = 1, kNotServing = 2;

// Returns the service name in a HealthCheckRequest ("" if the request is empty). Returns nullopt if the name
// has 128 bytes or more, or if the request has other fields.
std::optional<std::string_view> service_in(std::string_view request) {
  if (request.empty()) return "";
  if (request.size() < 2 || request[0] != kService) return std::nullopt;
  const auto size = static_cast<unsigned char>(request[1]);
  if (size >= 128 || request.size() != size + std::size_t{2}) return std::nullopt;
  return request.substr(2);
}

class Check : public Receiver {
 public:
  Check(const Health& health, std::shared_ptr<Call> call) : health_(health), call_(std::move(call)) {}

  bool message(std::string_view bytes) override {
    const auto service = service_in(bytes);
    const auto serving = service ? health_.serving(*service) : std::nullopt;
    if (!serving) {
      call_->finish(Status::not_found, "unknown service");
    } else {
      char* answer = call_->send(2);
      answer[0] = kStatus;
      answer[1] = *serving ? kServing : kNotServing;
      call_->finish(Status::ok);
    }
    return true;
  }
  void half_closed() override { call_->finish(Status::invalid_argument, "the request message is missing"); }
  void disconnected() override {}

 private:
  const Health& health_;
  const std::shared_ptr<Call> call_;
};

}  // namespace

void Health::set(std::string_view service, bool serving) {
  const std::lock_guard lock(mutex_);
  services_.insert_or_assign(std::string(service), serving);
}

std::optional<bool> Health::serving(std::string_view service) const {
  const std::lock_guard lock(mutex_);
  const auto known = services_.find(service);
  return known != services_.end() ? std::optional(known->second) : std::nullopt;
}

void Health::stop() {
  const std::lock_guard lock(mutex_);
  for (auto& [service, serving] : services_) serving = false;
}

Method health_check(const Health& health) {
  return [&health](std::shared_ptr<Call> call) { return std::make_shared<Check>(health, std::move(call)); };
}

}  // namespace octavo::grpc
