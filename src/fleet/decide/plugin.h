// Plugins are the steps of a decision. A plugin is one small file in admitters/, filters/, scorers/, pickers/
// or producers/, and one row in plugin_list.h. Plugins have no thread, clock or socket: they are called by
// one thread at a time, and the cycle contains the time and random numbers.
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

// Header fields; names are in lower case.
using HeaderFields = std::vector<std::pair<std::string, std::string>>;

class Plugin {
 public:
  Plugin() = default;
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  virtual ~Plugin() = default;

  // Called when the request of this cycle is sent to `endpoint`. For plugins that learn from decisions.
  virtual void sent(const Cycle&, EndpointId /*endpoint*/) {}
  // Adds header fields to the endpoint's answer; the client sends them with its next request.
  virtual void add_answer_headers(const Member& /*endpoint*/, HeaderFields&) const {}
  // Called when the endpoint reports changes of its prefix cache. Any thread, concurrently with all calls
  // except forget().
  virtual void cache_changed(EndpointId, std::span<const CacheEvent>) {}
  // Called when the endpoint has left the fleet or has lost its cache.
  virtual void forget(EndpointId) {}
  // Called when the endpoint has restarted, so its cache no longer contains earlier prompts. Blocks from KV
  // cache events stay, since the events report their loss.
  virtual void restarted(EndpointId) {}
  // Called about once a second; drops expired entries.
  virtual void expire(std::int64_t /*now_us*/) {}
};

// Removes candidates. If a filter would remove all of them, it removes none, unless configured otherwise.
class Filter : public virtual Plugin {
 public:
  virtual void filter(Cycle& cycle, Candidates& candidates) = 0;
};

// Gives each candidate a score in [0, 1]; higher is better. Other values are clamped. `scores` and
// `candidates` have the same length.
class Scorer : public virtual Plugin {
 public:
  virtual void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) = 0;
};

// Sorts the candidates in the order of attempts. `ranking` has all candidates with their totals, at least
// one.
class Picker : public virtual Plugin {
 public:
  std::int64_t endpoints_max = 1;  // maximum number of picked endpoints: the chosen one and its fallbacks

  virtual void pick(Cycle& cycle, std::vector<Score>& ranking) = 0;
};

// Computes data for other plugins before any profile runs: the cached part of the prompt at each endpoint.
class Producer : public virtual Plugin {
 public:
  virtual void produce(const Cycle& cycle, Overlap& overlap) = 0;
  // Size of the producer's index; nullopt: it has no index.
  virtual std::optional<IndexSize> index_size() const { return std::nullopt; }
};

// Refuses requests before any profile runs.
class Admitter : public Plugin {
 public:
  // The reason to refuse; nullopt: admit. Called with at least one candidate.
  virtual std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates) = 0;
};

}  // namespace octavo::fleet
