#include "serve/sagemaker_sessions.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/quoted_text.h"

namespace octavo {
namespace {

constexpr std::size_t kIdShownMax = 64;

// Returns a random UUID (RFC 9562, version 4).
std::string new_uuid() {
  const std::uint64_t high = (secret_seed() & ~std::uint64_t{0xF000}) | 0x4000;
  const std::uint64_t low = (secret_seed() >> 2) | std::uint64_t{1} << 63;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xFFFF, high & 0xFFFF,
                     low >> 48, low & 0xFFFF'FFFF'FFFF);
}

}  // namespace

Result<SageMakerSessions::Created> SageMakerSessions::create(std::int64_t now_s) {
  const std::lock_guard lock(mutex_);
  if (expires_s_.size() >= kSessionsMax)
    std::erase_if(expires_s_, [&](const auto& session) { return session.second <= now_s; });
  if (expires_s_.size() >= kSessionsMax)
    return failure(ErrorCode::resource_exhausted,
                   "{} sessions are open, the maximum: close sessions, or wait until they expire after {} s",
                   kSessionsMax, lifetime_s_);
  Created created{new_uuid(), now_s + lifetime_s_};
  expires_s_[created.id] = created.expires_s;
  return created;
}

Result<> SageMakerSessions::check(const std::string& id, std::int64_t now_s) {
  const std::lock_guard lock(mutex_);
  return find(id, now_s);
}

Result<> SageMakerSessions::close(const std::string& id, std::int64_t now_s) {
  const std::lock_guard lock(mutex_);
  TRY_VOID(find(id, now_s));
  expires_s_.erase(id);
  return {};
}

Result<> SageMakerSessions::find(const std::string& id, std::int64_t now_s) {
  const auto found = expires_s_.find(id);
  if (found != expires_s_.end() && found->second > now_s) return {};
  if (found != expires_s_.end()) expires_s_.erase(found);
  return invalid("X-Amzn-SageMaker-Session-Id",
                 "session not found: {} (never created, closed, or expired after {} s)",
                 quoted_text(std::string_view(id).substr(0, kIdShownMax)), lifetime_s_);
}

}  // namespace octavo
