// LoRA adapters of an engine, and adapter commands without a response yet. A restarted engine gets all of
// them again. Not thread-safe.
#pragma once

#include <map>
#include <string>

#include "remote/pending_commands.h"
#include "remote/unfinished_requests.h"
#include "remote/wire.h"

namespace octavo::remote {

class AdapterLedger {
 public:
  // Returns the message to the engine.
  ChangeAdapter add(ChangeAdapter change, AdapterDone done);
  void take(const AdapterChanged& changed, const UnfinishedRequests& requests);
  // Appends the commands that give a new engine the same adapters.
  void append_all(std::string& out, const UnfinishedRequests& requests);
  void end_commands(const Error& error) { commands_.end_all(std::unexpected(error)); }

 private:
  struct Command {
    ChangeAdapter change;
    AdapterDone done;
  };

  void forget_left(const UnfinishedRequests& requests);

  std::map<std::string, std::string> loaded_;  // path by name
  std::map<std::string, std::string> left_;    // paths by name of adapters that are unloaded but still in use
  PendingCommands<Command> commands_;
};

}  // namespace octavo::remote
