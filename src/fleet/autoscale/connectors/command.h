// Scales a fleet with a command of the user.
#pragma once

#include <optional>
#include <string>

#include "fleet/autoscale/connector.h"
#include "fleet/autoscale/owned_process.h"

namespace octavo::fleet {

struct CommandOptions {
  std::string command = {};  // each {replicas} in it is replaced by the number
  std::int64_t timeout_us = 60'000'000;
  std::int64_t retry_us = 10'000'000;  // pause after a failed run
};

// Runs the command when the number changes. Waits for the end of the previous run.
class CommandConnector final : public Connector {
 public:
  // replicas: number of existing replicas.
  CommandConnector(CommandOptions options, int replicas) : options_(std::move(options)), there_(replicas) {}

  void tick(int replicas, std::int64_t now_us) override;

 private:
  const CommandOptions options_;
  int there_;                              // number of replicas after the last command
  int asked_ = 0;                          // number of replicas requested by the running command
  std::optional<OwnedProcess> running_{};  // nullopt: no command is running
  std::int64_t began_us_ = 0;
  std::int64_t next_us_ = 0;  // earliest time of the next run
};

}  // namespace octavo::fleet
