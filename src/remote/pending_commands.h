// Commands to an engine without a response yet, in the order of their numbers. A restarted engine gets them
// again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"

namespace octavo::remote {

// Command: a type with a member `done`, which is called once with the result.
template <class Command>
class PendingCommands {
 public:
  // Returns the command's number; numbers start at 1.
  std::uint64_t add(Command command) {
    pending_.emplace(++last_, std::move(command));
    return last_;
  }
  // Removes and returns the command, or returns nullopt if it has ended already.
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
