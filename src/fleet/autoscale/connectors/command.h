// Scales a fleet by running a command that the user has configured.
#pragma once

#include <optional>
#include <string>

#include "fleet/autoscale/connector.h"
#include "fleet/autoscale/owned_process.h"

namespace octavo::fleet {

struct CommandOptions {
  std::string command = {};  // {replicas} is replaced by the number of replicas
  std::int64_t timeout_us = 60'000'000;
  std::int64_t retry_us = 10'000'000;
};

// Runs the command when the required number of replicas changes. Waits until the previous command has ended.
class CommandConnector final : public Connector {
 public:
  explicit CommandConnector(CommandOptions options) : options_(std::move(options)) {}

  Result<int> existing(const FleetReading& fleet) override;
  void tick(int replicas, std::int64_t now_us) override;

 private:
  const CommandOptions options_;
  int replicas_ = 0;  // number of replicas at the start, or after the last successful command
  int requested_ = 0;
  std::optional<OwnedProcess> running_{};  // nullopt: no command is running
  std::int64_t began_us_ = 0;
  std::int64_t next_us_ = 0;  // earliest time of the next run
};

}  // namespace octavo::fleet
