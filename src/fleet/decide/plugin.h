// The plugins are the steps of a decision. A plugin is one small file in admitters/, filters/, scorers/,
// pickers/ or producers/ and one row in plugin_table.cc. Plugins hold no thread, clock or socket: one thread
// at a time calls them, and the cycle has the time and random numbers.
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

  // The request of this cycle goes to `endpoint` now. For plugins that learn from decisions.
  virtual void sent(const Cycle&, EndpointId /*endpoint*/) {}
  // Adds header fields to the endpoint's answer, which the client sends with its next request.
  virtual void add_answer_headers(const Member& /*endpoint*/, HeaderFields&) const {}
  // The endpoint reports blocks added to its prefix cache and removed from it. On any thread, concurrently
  // with all calls except forget().
  virtual void cache_changed(EndpointId, std::span<const CacheEvent>) {}
  // The endpoint has left the fleet, or has lost its caches.
  virtual void forget(EndpointId) {}
  // The endpoint has restarted: its cache no longer holds the earlier prompts. Blocks known from its KV cache
  // events stay, since the events themselves report the loss.
  virtual void restarted(EndpointId) {}
  // Called about once a second, to drop expired entries.
  virtual void expire(std::int64_t /*now_us*/) {}
};

// Removes candidates. A filter that would remove all of them removes none, unless configured otherwise.
class Filter : public virtual Plugin {
 public:
  virtual void filter(Cycle& cycle, Candidates& candidates) = 0;
};

// Gives each candidate a score in [0, 1], higher is better; other values are clamped. `scores` has the length
// of `candidates`.
class Scorer : public virtual Plugin {
 public:
  virtual void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) = 0;
};

// Orders the candidates for the attempts. `ranking` has all of them with their totals, at least one.
class Picker : public virtual Plugin {
 public:
  std::int64_t endpoints_max = 1;  // number of the first entries picked: the chosen one and its fallbacks

  virtual void pick(Cycle& cycle, std::vector<Score>& ranking) = 0;
};

// Computes data for other plugins before any profile runs: the part of the prompt that each endpoint holds.
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
