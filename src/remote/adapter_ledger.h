// Remembers the LoRA adapters of an engine process, and the adapter commands to which the engine has not
// responded. EngineProcess sends both to a restarted engine. Not thread-safe.
#pragma once

#include <map>
#include <string>

#include "remote/pending_commands.h"
#include "remote/unfinished_requests.h"
#include "remote/wire.h"

namespace octavo::remote {

class AdapterLedger {
 public:
  ChangeAdapter add(ChangeAdapter change, AdapterDone done);
  void take(const AdapterChanged& changed, const UnfinishedRequests& requests);
  // Appends the commands that a restarted engine needs to have the same adapters.
  void append_all(std::string& out, const UnfinishedRequests& requests);
  // whether the engine has not responded to a command
  bool waiting() const { return commands_.begin() != commands_.end(); }
  void end_commands(const Error& error) { commands_.end_all(std::unexpected(error)); }

 private:
  struct Command {
    ChangeAdapter change;
    AdapterDone done;
  };

  void forget_left(const UnfinishedRequests& requests);

  std::map<std::string, std::string> loaded_;  // path of each adapter by name
  // paths of unloaded adapters that requests still use, by name
  std::map<std::string, std::string> left_;
  PendingCommands<Command> commands_;
};

}  // namespace octavo::remote
