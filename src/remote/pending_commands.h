// Commands to an engine process to which it has not responded, in the order of their numbers. EngineProcess
// sends them again to a restarted engine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"

namespace octavo::remote {

// Command: has a member `done`, which is called once with the result.
template <class Command>
class PendingCommands {
 public:
  // Returns the number of the command. Numbers start at 1.
  std::uint64_t add(Command command) {
    pending_.emplace(++last_, std::move(command));
    return last_;
  }
  // Removes and returns the command, or returns nullopt if the engine has responded to it before.
  std::optional<Command> take(std::uint64_t number) {
    auto found = pending_.extract(number);
    if (found.empty()) return std::nullopt;
    return std::move(found.mapped());
  }
  void end_all(const Result<>& result) {
    for (const auto& [number, command] : std::exchange(pending_, {})) command.done(result);
  }

  auto begin() const { return pending_.begin(); }
  auto end() const { return pending_.end(); }

 private:
  std::map<std::uint64_t, Command> pending_;
  std::uint64_t last_ = 0;
};

}  // namespace octavo::remote
