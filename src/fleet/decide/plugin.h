// A plugin is a step of a decision: one small file in admitters/, filters/, scorers/, pickers/ or producers/,
// and one row in plugin_list.h. Plugins have no thread, clock or socket. One thread at a time calls them; the
// cycle contains the time and random numbers.
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

// Header fields, with names in lower case.
using HeaderFields = std::vector<std::pair<std::string, std::string>>;

class Plugin {
 public:
  Plugin() = default;
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  virtual ~Plugin() = default;

  // The caller has sent the request of this cycle to `endpoint`. For plugins that learn from decisions.
  virtual void sent(const Cycle&, EndpointId /*endpoint*/) {}
  // Adds header fields to the endpoint's answer; the client sends them with its next request.
  virtual void add_answer_headers(const Member& /*endpoint*/, HeaderFields&) const {}
  // The endpoint has reported changes of its prefix cache. Called on any thread, concurrently with all
  // functions except forget().
  virtual void cache_changed(EndpointId, std::span<const CacheEvent>) {}
  // The endpoint has left the fleet or lost its cache.
  virtual void forget(EndpointId) {}
  // The endpoint has restarted, so its cache has lost earlier prompts. Blocks from KV cache events stay,
  // since events report their loss.
  virtual void restarted(EndpointId) {}
  // Drops expired entries. Called about once a second.
  virtual void expire(std::int64_t /*now_us*/) {}
};

// Removes candidates. If a filter would remove all candidates, it keeps all, unless configured otherwise.
class Filter : public virtual Plugin {
 public:
  virtual void filter(Cycle& cycle, Candidates& candidates) = 0;
};

// Gives each candidate a score from 0 to 1; higher is better. Other values are clamped. scores[i] is that of
// candidates[i].
class Scorer : public virtual Plugin {
 public:
  virtual void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) = 0;
};

// Sorts `ranking` in the order of attempts. It has all candidates with their totals, at least one.
class Picker : public virtual Plugin {
 public:
  std::int64_t endpoints_max = 1;  // maximum number of endpoints to use: the picked one and its fallbacks

  virtual void pick(Cycle& cycle, std::vector<Score>& ranking) = 0;
};

// Computes data for other plugins before the profiles run: the cached part of the prompt at each endpoint.
class Producer : public virtual Plugin {
 public:
  virtual void produce(const Cycle& cycle, Overlap& overlap) = 0;
  // Returns the size of the producer's index; nullopt if it has no index.
  virtual std::optional<IndexSize> index_size() const { return std::nullopt; }
};

// Refuses requests before the profiles run.
class Admitter : public Plugin {
 public:
  // Returns the reason to refuse; nullopt to admit. There is at least one candidate.
  virtual std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates) = 0;
};

}  // namespace octavo::fleet
