// consistent-hashing-picker (SGLang's consistent_hashing): the hash of a key chooses the endpoint.
// X-SMG-Target-Worker names a worker directly. Otherwise the key is X-SMG-Routing-Key, else the client's
// identity, else random.
#include <charconv>

#include "fleet/decide/pickers/ranking.h"
#include "fleet/decide/pickers/rendezvous.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kKeys[] = {"x-smg-routing-key", "authorization", "x-forwarded-for", "cookie"};

class ConsistentHashingPicker : public Picker {
 public:
  void pick(Cycle& cycle, std::vector<Score>& ranking) override {
    shuffle(ranking, cycle.draws);
    for (const std::string_view name : kKeys)
      if (const auto key = cycle.request.header(name)) {
        order_by_key(hash_of(*key, 0), cycle.view, ranking);
        break;
      }
    const auto wanted = std::ranges::find(ranking, target(cycle.request), &Score::endpoint);
    if (wanted != ranking.end()) std::rotate(ranking.begin(), wanted, wanted + 1);
  }

 private:
  // The endpoint for an index in GET /workers.
  static EndpointId target(const RouteRequest& request) {
    const std::string_view text = request.header("x-smg-target-worker").value_or("");
    EndpointId id = kNoEndpoint;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    return error == std::errc{} && end == text.data() + text.size() ? id : kNoEndpoint;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_consistent_hashing_picker(Parameters& parameters, Plugins&) {
  return make_picker<ConsistentHashingPicker>(parameters);
}

}  // namespace octavo::fleet
