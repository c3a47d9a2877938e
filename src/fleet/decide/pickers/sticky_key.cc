// sticky-key-picker: a routing key stays with who got it first, as long as that one can take requests
// (SGLang's manual).
#include <list>
#include <unordered_map>

#include "fleet/decide/pickers/ranking.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kKey = "x-smg-routing-key";

class StickyKeyPicker : public Picker {
 public:
  std::int64_t idle_max_us = std::int64_t{4} * 3600 * 1'000'000;
  std::int64_t keys_max = 1 << 20;  // beyond, the one that was used longest ago is forgotten

  void pick(Cycle& cycle, std::vector<Score>& ranking) override {
    shuffle(ranking, cycle.draws);
    const auto found = homes_.find(std::string(cycle.request.header(kKey).value_or("")));
    if (found == homes_.end()) return;
    const auto home = std::ranges::find(ranking, found->second->endpoint, &Score::endpoint);
    if (home != ranking.end()) std::rotate(ranking.begin(), home, home + 1);
  }

  void sent(const Cycle& cycle, EndpointId endpoint) override {
    const auto key = cycle.request.header(kKey);
    if (!key) return;
    if (const auto found = homes_.find(std::string(*key)); found != homes_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      recent_.front().endpoint = endpoint;
      recent_.front().used_us = cycle.now_us;
      return;
    }
    recent_.push_front({std::string(*key), endpoint, cycle.now_us});
    homes_.emplace(recent_.front().key, recent_.begin());
    if (std::ssize(recent_) > keys_max) drop_last();
  }

  void forget(EndpointId endpoint) override {
    for (auto it = recent_.begin(); it != recent_.end();) {
      const auto next = std::next(it);
      if (it->endpoint == endpoint) {
        homes_.erase(it->key);
        recent_.erase(it);
      }
      it = next;
    }
  }

  void expire(std::int64_t now_us) override {
    while (!recent_.empty() && now_us - recent_.back().used_us > idle_max_us) drop_last();
  }

 private:
  struct Home {
    std::string key;
    EndpointId endpoint;
    std::int64_t used_us;
  };

  void drop_last() {
    homes_.erase(recent_.back().key);
    recent_.pop_back();
  }

  std::list<Home> recent_;  // the last used first
  std::unordered_map<std::string, std::list<Home>::iterator> homes_;
};

}  // namespace

std::unique_ptr<Plugin> make_sticky_key_picker(Parameters& parameters, Plugins&) {
  auto picker = make_picker<StickyKeyPicker>(parameters);
  parameters.read_duration("maxIdle", picker->idle_max_us);
  parameters.read("maxKeys", picker->keys_max, 1, 1 << 26);
  return picker;
}

}  // namespace octavo::fleet
