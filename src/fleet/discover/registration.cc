#include "fleet/discover/registration.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <utility>

#include "base/log.h"
#include "fleet/discover/follower.h"

namespace octavo::fleet {
namespace {

constexpr int kChecksPerLease = 3;

}  // namespace

struct Registration::Kept {
  Kept(std::unique_ptr<ListEntry> entry_to_keep, int interval_ms)
      : entry(std::move(entry_to_keep)),
        follower({.source = entry->name(),
                  .interval_ms = interval_ms,
                  .pause_ms_max = interval_ms,
                  .while_failing = "this server is not registered there and keeps trying"},
                 [this] { return entry->keep(); }) {}

  const std::unique_ptr<ListEntry> entry;
  Follower follower;
};

Registration::Registration(const RegistrationOptions& options, const Endpoint& worker) {
  const int interval_ms = options.lease_s * 1000 / kChecksPerLease;
  if (options.etcd) kept_.push_back(std::make_unique<Kept>(etcd_entry(options, worker), interval_ms));
  for (const http::Url& router : options.routers)
    kept_.push_back(std::make_unique<Kept>(router_entry(options, router, worker), interval_ms));
}

Registration::~Registration() {
  for (const std::unique_ptr<Kept>& kept : kept_) {
    kept->follower.stop();
    if (const Result<> removed = kept->entry->remove(); !removed)
      log_warning("{}: cannot remove this server's entry: {}", kept->entry->name(), removed.error().message);
    else
      log_info("{}: removed this server's entry", kept->entry->name());
  }
}

Result<std::string> host_towards(const http::Url& url) {
  namespace ip = boost::asio::ip;
  boost::asio::io_context context;
  boost::system::error_code error;
  ip::udp::resolver resolver(context);
  const auto found = resolver.resolve(url.host, std::to_string(url.port), error);
  if (error) return failure(ErrorCode::io, "{}: {}", url.host, error.message());
  ip::udp::socket socket(context);
  socket.connect(*found.begin(), error);  // sends no packet
  if (error) return failure(ErrorCode::io, "{}: {}", url.host, error.message());
  const ip::address own = socket.local_endpoint().address();
  return own.is_v6() ? "[" + own.to_string() + "]" : own.to_string();
}

}  // namespace octavo::fleet
