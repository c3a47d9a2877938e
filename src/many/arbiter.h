// Decides which models are in memory. It has no thread and no clock: all times are arguments, in us.
//
// A model uses memory for weights and workspaces while it is loaded, and for its KV cache until the cache is
// dropped. If a model is requested and does not fit, the arbiter unloads idle models (the least recently used
// first), then busy models that have been loaded for slice_us (the longest loaded first). The requests of a
// busy model wait and continue after its next load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"

namespace octavo::many {

struct ArbiterRules {
  std::int64_t memory_bytes = 0;  // memory for all models together
  // Time for which a busy model stays loaded while others wait. A model always stays at least as long as its
  // last load took.
  std::int64_t slice_us = 0;
};

struct ModelRules {
  std::int64_t weight_bytes = 0;     // an estimate until the first load
  std::int64_t cache_bytes = 0;      // an estimate until the first load
  bool pinned = false;               // whether the arbiter never unloads the model
  std::int64_t min_idle_us = 0;      // time without requests after which the model counts as idle
  std::int64_t idle_timeout_us = 0;  // time without requests after which the model is unloaded; 0: never
};

enum class Presence : std::uint8_t { unloaded, loading, loaded, unloading };

struct Action {
  enum class Kind : std::uint8_t { load, unload, drop_cache };
  Kind kind;
  std::size_t model;
  bool operator==(const Action&) const = default;
};

class Arbiter {
 public:
  struct Model {
    ModelRules rules;
    Presence presence = Presence::unloaded;
    bool has_cache = false;
    bool keeps_cache = false;         // the cache stays after an unload
    bool busy = false;                // whether the model has unfinished requests
    std::int64_t wanted_us = 0;       // time since which requests wait for the model; 0: none waits
    std::int64_t deadline_us = 0;     // earliest deadline of these requests; 0: none
    std::int64_t began_us = 0;        // start of the current or last load
    std::int64_t loaded_us = 0;       // end of the last load
    std::int64_t used_us = 0;         // last time with a request; 0: never
    // time without requests after which a client wants the unload; negative: never; nullopt: idle_timeout_us
    std::optional<std::int64_t> keep_us{};
    std::int64_t stays_until_us = 0;  // the engine refused to unload; the arbiter tries again at this time
    std::int64_t total_bytes() const { return rules.weight_bytes + rules.cache_bytes; }
    // bytes that an unload frees
    std::int64_t unload_bytes() const { return keeps_cache ? rules.weight_bytes : total_bytes(); }
    std::int64_t load_us() const { return loaded_us > began_us ? loaded_us - began_us : 0; }
  };

  // Returns an error on "models_memory" if a model cannot fit beside the pinned models.
  static Result<Arbiter> make(ArbiterRules rules, const std::vector<ModelRules>& models);

  // A request or command needs the model. deadline_us: 0: none.
  void requested(std::size_t model, std::int64_t now_us, std::int64_t deadline_us = 0);
  // No request waits for the model any more.
  void withdrawn(std::size_t model);
  void set_busy(std::size_t model, bool busy, std::int64_t now_us);
  // Sets Model::keep_us until the next unload. Has no effect on an unloaded model.
  void keep(std::size_t model, std::int64_t keep_us);
  // A client wants the memory of this model. Returns an error if the model is not loaded or is busy.
  Result<Action> unload(std::size_t model);

  // Returns what to do now. Report the results with loaded(), load_failed(), unloaded() and unload_failed().
  // Call it after every event, and every few milliseconds while requests wait.
  std::vector<Action> decide(std::int64_t now_us);

  // keeps_cache: the cache stays in memory when the model is unloaded.
  void loaded(std::size_t model, std::int64_t now_us, std::int64_t weight_bytes, std::int64_t cache_bytes,
              bool keeps_cache);
  // A load has failed, or a loaded engine has failed: the model uses no memory.
  void load_failed(std::size_t model);
  void unloaded(std::size_t model, std::int64_t now_us);
  // The engine refuses to unload: the model stays loaded.
  void unload_failed(std::size_t model, std::int64_t now_us);

  // Returns an error if the model can never be in memory beside the pinned models. A load measures the sizes,
  // so a model can become too large. The arbiter never loads such a model again.
  Result<> fits(std::size_t model) const;

  bool waiting() const;  // whether a request waits for a model
  const std::vector<Model>& models() const { return models_; }
  std::int64_t used_bytes() const;
  std::int64_t memory_bytes() const { return rules_.memory_bytes; }

 private:
  // Caches of unloaded models use at most 1 / kCacheFraction of the memory.
  static constexpr std::int64_t kCacheFraction = 4;

  explicit Arbiter(ArbiterRules rules) : rules_(rules) {}
  std::int64_t free_bytes() const { return rules_.memory_bytes - used_bytes(); }
  std::int64_t needed_bytes(const Model& model) const;
  std::int64_t pinned_bytes(std::size_t end) const;
  std::int64_t evictable_us(const Model& model) const;
  bool may_evict(const Model& victim, const Model* for_model, std::int64_t now_us) const;
  std::vector<std::size_t> victims(std::int64_t& gap, const Model* for_model, std::int64_t now_us) const;
  std::vector<std::size_t> kept_caches(const Model* except) const;
  bool unloads_when_idle(std::size_t model, std::int64_t now_us) const;
  void make_room(std::int64_t gap, const Model* for_model, std::int64_t now_us, std::vector<Action>& actions);
  void unload_now(std::size_t model, std::vector<Action>& actions);
  void drop_cache(std::size_t model, std::vector<Action>& actions);

  ArbiterRules rules_;
  std::vector<Model> models_;
};

}  // namespace octavo::many
