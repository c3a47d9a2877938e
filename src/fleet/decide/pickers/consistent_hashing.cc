// consistent-hashing-picker (SGLang's consistent_hashing, vllm-router's consistent_hash): the hash of a
// routing key chooses the endpoint. If the request has none, the key is the client's identity, or a random
// number. The header X-SMG-Target-Worker has priority: it names a worker by its index in GET /workers, its
// URL or its name. If the named worker is missing, no endpoint is picked.
#include <charconv>

#include "fleet/decide/pickers/ranking.h"
#include "fleet/decide/pickers/rendezvous.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kIdentities[] = {"authorization", "x-forwarded-for", "cookie"};

class ConsistentHashingPicker : public Picker {
 public:
  void pick(Cycle& cycle, std::vector<Score>& ranking) override {
    shuffle(ranking, cycle.draws);
    std::string_view key = cycle.request.routing_key;
    for (const std::string_view name : kIdentities)
      if (key.empty()) key = cycle.request.header(name).value_or("");
    if (!key.empty()) order_by_key(hash_of(key, 0), cycle.view, ranking);
    const std::string_view target = cycle.request.header("x-smg-target-worker").value_or("");
    if (target.empty()) return;
    std::erase_if(ranking,
                  [&](const Score& score) { return !is_named(target, *cycle.view.find(score.endpoint)); });
  }

 private:
  static bool is_named(std::string_view target, const Member& member) {
    if (target == member.endpoint->url || target == member.endpoint->name) return true;
    EndpointId id = kNoEndpoint;
    const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), id);
    return error == std::errc{} && end == target.data() + target.size() && id == member.id;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_consistent_hashing_picker(Parameters& parameters, Plugins&) {
  return make_picker<ConsistentHashingPicker>(parameters);
}

}  // namespace octavo::fleet
