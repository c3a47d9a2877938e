// p2p-source-producer: chooses the peer from which the computing endpoint fetches KV blocks. The peer must
// have cached more of the prompt than the computing endpoint. Candidates are the peers that hold at most one
// block less than the best peer. A hash of the request's id picks one of them, which spreads the requests;
// peers with short queues are picked more often.
#include <algorithm>

#include "fleet/decide/kv_source.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"

namespace octavo::fleet {
namespace {

double share_of(std::string_view id) {
  std::uint32_t hash = 2166136261U;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash / 4294967296.0;
}

class P2pSource : public KvSource {
 public:
  std::size_t overlap = 0;  // index in Cycle::overlaps
  std::string id_header;
  std::int64_t more_min = 1;  // the peer must have cached at least this number of additional tokens

  const Member* source(Cycle& cycle, const Candidates& candidates, EndpointId computing) override {
    const auto held = [&](const Member* m) { return tokens(cycle.overlaps[overlap], m->id); };
    const auto weight = [](const Member* m) { return 1.0 / (1.0 + m->state.waiting); };
    std::int64_t most = 0;
    for (const Member* member : candidates) most = std::max(most, held(member));
    if (most == 0) return nullptr;
    peers_.clear();
    double total = 0;
    for (const Member* member : candidates) {
      if (held(member) == 0 || held(member) + cycle.overlaps[overlap].block_size < most) continue;
      peers_.push_back(member);
      total += weight(member);
    }
    const auto id = cycle.request.header(id_header);
    double rest = total * (id ? share_of(*id) : cycle.draws.unit());
    const Member* chosen = peers_.back();
    for (const Member* peer : peers_) {
      if (rest < weight(peer)) {
        chosen = peer;
        break;
      }
      rest -= weight(peer);
    }
    const std::int64_t more = held(chosen) - tokens(cycle.overlaps[overlap], computing);
    return chosen->id != computing && more >= more_min ? chosen : nullptr;
  }

 private:
  static std::int64_t tokens(const Overlap& overlap, EndpointId id) {
    return std::int64_t{overlap.of(id).blocks()} * overlap.block_size;
  }

  Candidates peers_;
};

}  // namespace

std::unique_ptr<Plugin> make_p2p_source(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<P2pSource>();
  std::string producer = "approx-prefix-cache-producer", prefill;
  parameters.read("prefixMatchInfoProducerName", producer);
  parameters.read("minCachedTokenDelta", plugin->more_min, 1, std::int64_t{1} << 31);
  parameters.read("prefillProfileName", prefill);  // has no effect, because the computing endpoint is known
  plugin->overlap = plugins.producer(producer, parameters, "prefixMatchInfoProducerName");
  plugin->id_header = plugins.reads_header("x-request-id");
  return plugin;
}

}  // namespace octavo::fleet
