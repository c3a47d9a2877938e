// The plugins are the steps of a decision. A plugin is one small file in admitters/, filters/, scorers/,
// pickers/ or producers/ and one row in plugin_table.cc. Plugins hold no thread, clock or socket: one thread
// at a time calls them, time and randomness come with the cycle.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fleet/decide/cycle.h"
#include "fleet/decide/decision.h"
#include "fleet/index/cache_event.h"
#include "fleet/index/index_size.h"

namespace octavo::fleet {

// Names in lower case, and values.
using HeaderFields = std::vector<std::pair<std::string, std::string>>;

class Plugin {
 public:
  Plugin() = default;
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  virtual ~Plugin() = default;

  // The request of this cycle goes to `endpoint` now. For those who learn from decisions.
  virtual void sent(const Cycle&, EndpointId /*endpoint*/) {}
  // Adds what the header of the answer that `endpoint` gives is to have, for the client to send again.
  virtual void add_answer_headers(const Member& /*endpoint*/, HeaderFields&) const {}
  // The endpoint tells what came into its prefix cache and what went. On any thread, beside everything but
  // forget().
  virtual void cache_changed(EndpointId, std::span<const CacheEvent>) {}
  // The endpoint has left the fleet, or has lost its caches.
  virtual void forget(EndpointId) {}
  // The endpoint has restarted: its cache no longer holds the earlier prompts. Blocks known from its KV cache
  // events stay, since the events themselves report the loss.
  virtual void restarted(EndpointId) {}
  // Called about once a second, to drop expired entries.
  virtual void expire(std::int64_t /*now_us*/) {}
};

// Takes candidates away. One that would leave nobody leaves everybody, unless it says otherwise.
class Filter : public virtual Plugin {
 public:
  virtual void filter(Cycle& cycle, Candidates& candidates) = 0;
};

// Gives each candidate a number in [0, 1], higher is better; what is outside is clamped. scores is as long as
// candidates.
class Scorer : public virtual Plugin {
 public:
  virtual void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) = 0;
};

// Puts the candidates in the order in which they are tried. `ranking` comes with all of them and their
// totals, at least one.
class Picker : public virtual Plugin {
 public:
  std::int64_t endpoints_max =
      1;  // how many of the ranking's first are picked: one, and those to fall back on

  virtual void pick(Cycle& cycle, std::vector<Score>& ranking) = 0;
};

// Finds out, before any profile runs, what others need: how much of the prompt each endpoint holds.
class Producer : public virtual Plugin {
 public:
  virtual void produce(const Cycle& cycle, Overlap& overlap) = 0;
  // Number of blocks in its index, if it has one.
  virtual std::optional<IndexSize> index_size() const { return std::nullopt; }
};

// Refuses requests before any profile runs.
class Admitter : public Plugin {
 public:
  // The reason to refuse, if any. Called with at least one candidate.
  virtual std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates) = 0;
};

}  // namespace octavo::fleet
