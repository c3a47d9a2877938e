// A plugin is a step of a routing decision, as in llm-d. Each plugin has one small file in admitters/,
// filters/, scorers/, pickers/ or producers/, and one row in plugin_list.h. A plugin has no thread, clock
// or socket, and is called by one thread at a time. It reads the time and random numbers from the cycle.
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

// Names are in lower case.
using HeaderFields = std::vector<std::pair<std::string, std::string>>;

class Plugin {
 public:
  Plugin() = default;
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  virtual ~Plugin() = default;

  // Called after the caller has sent the request of this cycle to `endpoint`, for plugins that learn from
  // decisions.
  virtual void sent(const Cycle&, EndpointId /*endpoint*/) {}
  // Adds header fields to the response of the endpoint. The client sends them with its next request.
  virtual void add_answer_headers(const Member& /*endpoint*/, HeaderFields&) const {}
  // Called when the endpoint reports changes of its prefix cache. May be called on any thread, concurrently
  // with all functions except forget().
  virtual void cache_changed(EndpointId, std::span<const CacheEvent>) {}
  // Called when the endpoint has left the fleet or lost its cache.
  virtual void forget(EndpointId) {}
  // Called when the endpoint has restarted, so that its cache has lost earlier prompts. Plugins keep blocks
  // from KV cache events, because further events report the loss.
  virtual void restarted(EndpointId) {}
  virtual void expire(std::int64_t /*now_us*/) {}
  // Called when no more requests with this routing key will come.
  virtual void finished(std::string_view /*routing_key*/) {}
};

// A filter removes candidates. If a filter would remove all candidates, it keeps all, unless it is
// configured otherwise.
class Filter : public virtual Plugin {
 public:
  virtual void filter(Cycle& cycle, Candidates& candidates) = 0;
};

// A scorer gives candidates[i] the score scores[i] from 0 to 1, where 1 is best. Values outside the range
// are clamped.
class Scorer : public virtual Plugin {
 public:
  virtual void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) = 0;
};

// A picker sorts `ranking`, which has at least one candidate, in the order of attempts.
class Picker : public virtual Plugin {
 public:
  std::int64_t endpoints_max = 1;  // number of endpoints to use: the picked endpoint and its fallbacks

  virtual void pick(Cycle& cycle, std::vector<Score>& ranking) = 0;
};

// A producer computes data for all other plugins before the profiles run: the cached part of the prompt at
// each endpoint.
class Producer : public virtual Plugin {
 public:
  virtual void produce(const Cycle& cycle, Overlap& overlap) = 0;
  virtual std::optional<IndexSize> index_size() const { return std::nullopt; }
};

// An admitter may refuse a request before the profiles run.
class Admitter : public Plugin {
 public:
  // Returns the reason to refuse the request, or nullopt to admit it. `candidates` is not empty.
  virtual std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates) = 0;
};

}  // namespace octavo::fleet
