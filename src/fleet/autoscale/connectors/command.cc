#include "fleet/autoscale/connectors/command.h"

#include <boost/algorithm/string/replace.hpp>

#include "base/log.h"

namespace octavo::fleet {
namespace {

std::string with_number(const std::string& command, int replicas) {
  return boost::replace_all_copy(command, "{replicas}", std::to_string(replicas));
}

}  // namespace

Result<int> CommandConnector::existing(const FleetReading& fleet) {
  TRY(replicas_, fleet.existing());
  return replicas_;
}

void CommandConnector::tick(int replicas, std::int64_t now_us) {
  if (running_ && running_->running() && now_us - began_us_ < options_.timeout_us) return;
  if (running_) {
    if (running_->succeeded()) {
      replicas_ = requested_;
    } else {
      const bool late = running_->running();
      running_->kill();
      log_warning("{}: {}", with_number(options_.command, requested_),
                  late ? "did not end in time" : running_->fate());
      next_us_ = now_us + options_.retry_us;
    }
    running_.reset();
  }
  if (replicas == replicas_ || now_us < next_us_) return;
  requested_ = replicas;
  began_us_ = now_us;
  auto started = OwnedProcess::start(with_number(options_.command, replicas));
  if (started) {
    running_ = *std::move(started);
    return;
  }
  log_warning("{}", started.error().message);
  next_us_ = now_us + options_.retry_us;
}

}  // namespace octavo::fleet
