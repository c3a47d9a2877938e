#include "many/arbiter.h"

#include <algorithm>
#include <utility>

#include "base/size_text.h"

namespace octavo::many {
namespace {

constexpr std::int64_t kRetryUs = 1'000'000;  // minimum time between two attempts to unload a model

}  // namespace

Result<Arbiter> Arbiter::make(ArbiterRules rules, const std::vector<ModelRules>& models) {
  Arbiter arbiter(rules);
  std::int64_t pinned = 0;
  for (const ModelRules& model : models) {
    arbiter.models_.push_back({.rules = model});
    if (model.pinned) pinned += model.weight_bytes + model.cache_bytes;
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    const std::int64_t own = models[i].weight_bytes + models[i].cache_bytes;
    const std::int64_t others = pinned - (models[i].pinned ? own : 0);
    if (own + others > rules.memory_bytes)
      return invalid("models_memory",
                     "is {}, but model {} of the list needs {} beside {} of pinned models: set "
                     "--models-memory, --kv-cache-memory-bytes or --quantization, or pin fewer models",
                     size_text(rules.memory_bytes), i + 1, size_text(own), size_text(others));
  }
  return arbiter;
}

void Arbiter::requested(std::size_t index, std::int64_t now_us, std::int64_t deadline_us) {
  Model& model = models_[index];
  model.used_us = now_us;
  if (model.presence == Presence::loaded) return;
  if (model.wanted_us == 0) model.wanted_us = now_us;
  if (deadline_us != 0 && (model.deadline_us < now_us || deadline_us < model.deadline_us))
    model.deadline_us = deadline_us;
}

void Arbiter::withdrawn(std::size_t index) {
  Model& model = models_[index];
  if (model.presence == Presence::unloaded && !model.busy) model.wanted_us = model.deadline_us = 0;
}

void Arbiter::set_busy(std::size_t index, bool busy, std::int64_t now_us) {
  Model& model = models_[index];
  if (busy || model.busy) model.used_us = now_us;
  model.busy = busy;
  if (busy && model.presence == Presence::unloaded && model.wanted_us == 0) model.wanted_us = now_us;
}

void Arbiter::keep(std::size_t index, std::int64_t keep_us) {
  Model& model = models_[index];
  if (model.presence == Presence::loading || model.presence == Presence::loaded) model.keep_us = keep_us;
}

Result<Action> Arbiter::unload(std::size_t index) {
  Model& model = models_[index];
  if (model.presence != Presence::loaded) return failure(ErrorCode::unavailable, "the model is not loaded");
  if (model.busy) return failure(ErrorCode::unavailable, "the model has unfinished requests");
  std::vector<Action> actions;
  unload_now(index, actions);
  return actions.front();
}

std::int64_t Arbiter::used_bytes() const {
  std::int64_t used = 0;
  for (const Model& model : models_) {
    const bool present = model.presence != Presence::unloaded;
    if (present) used += model.rules.weight_bytes;
    if (present || model.has_cache) used += model.rules.cache_bytes;
  }
  return used;
}

std::int64_t Arbiter::needed_bytes(const Model& model) const {
  return model.rules.weight_bytes + (model.has_cache ? 0 : model.rules.cache_bytes);
}

// Returns the bytes of the pinned models before `end` that fit together.
std::int64_t Arbiter::pinned_bytes(std::size_t end) const {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < end; ++i)
    if (models_[i].rules.pinned && bytes + models_[i].total_bytes() <= rules_.memory_bytes)
      bytes += models_[i].total_bytes();
  return bytes;
}

Result<> Arbiter::fits(std::size_t index) const {
  const Model& model = models_[index];
  const std::int64_t pinned = pinned_bytes(model.rules.pinned ? index : models_.size());
  if (model.total_bytes() + pinned <= rules_.memory_bytes) return {};
  return failure(
      ErrorCode::unavailable,
      "the model needs {} ({} of weights, {} of KV cache) beside {} of pinned models, but "
      "--models-memory is {}: raise --models-memory, or set a smaller --kv-cache-memory-bytes or a "
      "--quantization for the model",
      size_text(model.total_bytes()), size_text(model.rules.weight_bytes), size_text(model.rules.cache_bytes),
      size_text(pinned), size_text(rules_.memory_bytes));
}

// Returns the time from which the model may be unloaded for another one.
std::int64_t Arbiter::evictable_us(const Model& model) const {
  const std::int64_t slice_end = model.loaded_us + std::max(rules_.slice_us, model.load_us());
  if (model.busy) return slice_end;
  return std::min(slice_end,
                  std::max(model.loaded_us + model.load_us(), model.used_us + model.rules.min_idle_us));
}

// The victim's slice ends early if for_model would otherwise miss its deadline, and can still load in time. A
// model that does not fit keeps its memory until its requests have ended, because they cannot wait for
// another load.
bool Arbiter::may_evict(const Model& victim, const Model* for_model, std::int64_t now_us) const {
  if (victim.presence != Presence::loaded || victim.rules.pinned || &victim == for_model) return false;
  const auto index = static_cast<std::size_t>(&victim - models_.data());
  if (now_us < victim.stays_until_us || (victim.busy && !fits(index))) return false;
  const std::int64_t from_us = evictable_us(victim);
  if (from_us <= now_us) return true;
  if (now_us < victim.loaded_us + victim.load_us()) return false;
  // The time of a load is unknown before the first one.
  if (for_model == nullptr || for_model->deadline_us == 0 || for_model->load_us() == 0) return false;
  return now_us + for_model->load_us() <= for_model->deadline_us &&
         from_us + for_model->load_us() > for_model->deadline_us;
}

// Returns models whose unload frees `gap` bytes, or all that may be unloaded, and subtracts what they free
// from `gap`.
std::vector<std::size_t> Arbiter::victims(std::int64_t& gap, const Model* for_model,
                                          std::int64_t now_us) const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < models_.size(); ++i)
    if (may_evict(models_[i], for_model, now_us)) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const Model& model = models_[i];
    return std::pair(model.busy, model.busy ? model.loaded_us : model.used_us);
  });
  std::vector<std::size_t> chosen;
  for (const std::size_t i : order) {
    if (gap <= 0) break;
    gap -= models_[i].unload_bytes();
    chosen.push_back(i);
  }
  // A later, larger model may make an earlier one unnecessary.
  std::erase_if(chosen, [&](std::size_t i) {
    const std::int64_t bytes = models_[i].unload_bytes();
    if (gap + bytes > 0) return false;
    gap += bytes;
    return true;
  });
  return chosen;
}

// Returns the unloaded models with a cache, the least recently used first.
std::vector<std::size_t> Arbiter::kept_caches(const Model* except) const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < models_.size(); ++i)
    if (models_[i].presence == Presence::unloaded && models_[i].has_cache && &models_[i] != except)
      order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return models_[i].used_us; });
  return order;
}

void Arbiter::unload_now(std::size_t index, std::vector<Action>& actions) {
  models_[index].presence = Presence::unloading;
  actions.push_back({Action::Kind::unload, index});
}

void Arbiter::drop_cache(std::size_t index, std::vector<Action>& actions) {
  models_[index].has_cache = false;
  actions.push_back({Action::Kind::drop_cache, index});
}

// Frees `gap` bytes: weights first, because a cache cannot be loaded again. Does nothing if less than `gap`
// bytes may be freed.
void Arbiter::make_room(std::int64_t gap, const Model* for_model, std::int64_t now_us,
                        std::vector<Action>& actions) {
  for (const Model& model : models_)
    if (model.presence == Presence::unloading) gap -= model.unload_bytes();
  if (gap <= 0) return;
  const std::vector<std::size_t> chosen = victims(gap, for_model, now_us);
  const std::vector<std::size_t> caches = kept_caches(for_model);
  std::int64_t in_caches = 0;
  for (const std::size_t i : caches) in_caches += models_[i].rules.cache_bytes;
  for (const std::size_t i : chosen) in_caches += models_[i].total_bytes() - models_[i].unload_bytes();
  if (gap > in_caches) return;
  for (const std::size_t i : chosen) unload_now(i, actions);
  for (const std::size_t i : caches) {
    if (gap <= 0) break;
    gap -= models_[i].rules.cache_bytes;
    drop_cache(i, actions);
  }
}

// An idle model leaves after its timeout, and at once if it does not fit.
bool Arbiter::unloads_when_idle(std::size_t index, std::int64_t now_us) const {
  const Model& model = models_[index];
  if (model.presence != Presence::loaded || model.busy || now_us < model.stays_until_us) return false;
  if (!fits(index)) return true;
  if (model.rules.pinned) return false;
  const std::int64_t idle_us = now_us - model.used_us;
  if (model.keep_us) return *model.keep_us >= 0 && idle_us >= *model.keep_us;
  return model.rules.idle_timeout_us > 0 && idle_us >= model.rules.idle_timeout_us;
}

std::vector<Action> Arbiter::decide(std::int64_t now_us) {
  std::vector<Action> actions;
  for (std::size_t i = 0; i < models_.size(); ++i)
    if (unloads_when_idle(i, now_us)) unload_now(i, actions);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < models_.size(); ++i)
    if (models_[i].presence == Presence::unloaded && models_[i].wanted_us != 0 && fits(i)) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return models_[i].wanted_us; });
  bool first = true;  // memory is freed only for the model that has waited longest
  std::int64_t reserved = 0;
  for (const std::size_t i : order) {
    Model& model = models_[i];
    if (needed_bytes(model) <= free_bytes() - reserved) {
      model.presence = Presence::loading;
      model.began_us = now_us;
      actions.push_back({Action::Kind::load, i});
    } else if (std::exchange(first, false)) {
      const std::size_t before = actions.size();
      make_room(needed_bytes(model) - free_bytes(), &model, now_us, actions);
      // Without a reservation, small models would take each piece of memory before a large model fits.
      const bool unloads = std::ranges::find(models_, Presence::unloading, &Model::presence) != models_.end();
      if (unloads || actions.size() > before || now_us - model.wanted_us >= rules_.slice_us)
        reserved = needed_bytes(model);
    }
  }
  // A model can need more memory than the estimate.
  if (order.empty() && free_bytes() < 0) make_room(-free_bytes(), nullptr, now_us, actions);
  std::int64_t cached = 0;
  const std::vector<std::size_t> caches = kept_caches(nullptr);
  for (const std::size_t i : caches) cached += models_[i].rules.cache_bytes;
  for (const std::size_t i : caches) {
    if (cached <= rules_.memory_bytes / kCacheFraction) break;
    cached -= models_[i].rules.cache_bytes;
    drop_cache(i, actions);
  }
  return actions;
}

void Arbiter::loaded(std::size_t index, std::int64_t now_us, std::int64_t weight_bytes,
                     std::int64_t cache_bytes, bool keeps_cache) {
  Model& model = models_[index];
  model.presence = Presence::loaded;
  model.rules.weight_bytes = weight_bytes;
  model.rules.cache_bytes = cache_bytes;
  model.has_cache = true;
  model.keeps_cache = keeps_cache;
  model.loaded_us = model.used_us = now_us;
  model.wanted_us = model.deadline_us = 0;
}

void Arbiter::load_failed(std::size_t index) {
  Model& model = models_[index];
  model.presence = Presence::unloaded;
  model.wanted_us = model.deadline_us = 0;
}

void Arbiter::unloaded(std::size_t index, std::int64_t now_us) {
  Model& model = models_[index];
  model.presence = Presence::unloaded;
  model.has_cache = model.has_cache && model.keeps_cache;
  model.keep_us.reset();
  set_busy(index, model.busy, now_us);
}

void Arbiter::unload_failed(std::size_t index, std::int64_t now_us) {
  Model& model = models_[index];
  model.presence = Presence::loaded;
  model.wanted_us = model.deadline_us = 0;
  model.stays_until_us = now_us + std::max(rules_.slice_us, kRetryUs);
}

bool Arbiter::waiting() const {
  return std::ranges::any_of(models_, [](const Model& model) {
    return model.wanted_us != 0 || model.presence == Presence::unloading;
  });
}

}  // namespace octavo::many
