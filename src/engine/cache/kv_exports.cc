#include "engine/cache/kv_exports.h"

#include <algorithm>
#include <utility>

#include "transfer/kv_pieces.h"

namespace octavo {

std::optional<KvTransferParams> KvExports::offer(const Accepted& accepted, std::int64_t now_us) {
  if (!may_travel(accepted)) return std::nullopt;
  std::optional<KvTransferParams> reply;
  const std::vector<Hash128> keys = side_.keys_of(accepted);
  const KvPrompt prompt = side_.prompt_of(accepted, keys);
  for (const auto& connector : side_.connectors) {
    if (!connector->wants(prompt)) continue;
    StoreTask task{.owner = ++last_owner_};
    PrefixHold* held = side_.hold(accepted, 0);
    if (held != nullptr && held->keys.empty()) side_.scheduler.let_go(std::exchange(held, nullptr));
    if (held != nullptr) {
      task.prefix = static_cast<int>(held->keys.size());
      const std::vector<KvPiece> pieces = pieces_of(side_.format, 0, task.prefix);
      task.keys = piece_keys(pieces, keys);
      task.blocks = side_.places_of(*held, pieces);
      side_.count_held(*held);
      exports_[task.owner] = {held, {keys.begin(), keys.begin() + task.prefix}};
    }
    if (auto told = connector->store(prompt, std::move(task), now_us)) reply = std::move(told);
  }
  return reply;
}

void KvExports::drop(std::int64_t now_us) {
  for (const auto& connector : side_.connectors) {
    side_.events.tell_changes(*connector);
    for (const std::uint64_t owner : connector->take_stored(now_us)) {
      Export ended = exports_.extract(owner).mapped();
      side_.tell_stored(*ended.hold, ended.keys);
      side_.let_go(ended.hold);
    }
  }
}

bool KvExports::give_way() {
  return std::ranges::any_of(side_.connectors, [](const auto& connector) { return connector->give_way(); });
}

void KvExports::let_go_all() {
  for (auto& [owner, entry] : exports_) side_.let_go(entry.hold);
  exports_.clear();
}

}  // namespace octavo
