#include "engine/cache/kv_exports.h"

#include <algorithm>
#include <utility>

#include "transfer/kv_pieces.h"

namespace octavo {

std::optional<KvTransferParams> KvExports::offer(const Accepted& accepted, std::span<const TokenId> text,
                                                 std::int64_t now_us) {
  if (!may_travel(accepted)) return std::nullopt;
  const bool is_last = accepted.unfinished == 1;
  std::optional<KvTransferParams> reply;
  for (const auto& connector : side_.connectors) {
    const bool with_answer = connector->stores_answers() && !text.empty();
    if (!with_answer && !is_last) continue;
    auto params = store(*connector, accepted, with_answer ? text : accepted.request.prompt, now_us);
    if (params) reply = std::move(params);
  }
  return reply;
}

std::optional<KvTransferParams> KvExports::store(KvConnector& connector, const Accepted& accepted,
                                                 std::span<const TokenId> tokens, std::int64_t now_us) {
  const std::vector<Hash128> keys = side_.keys_of(accepted, tokens);
  const KvPrompt prompt = side_.prompt_of(accepted, tokens, keys);
  if (!connector.wants(prompt)) return std::nullopt;
  StoreTask task{.owner = ++last_owner_};
  PrefixHold* held = side_.hold(accepted, tokens, 0);
  if (held != nullptr && held->keys.empty()) side_.scheduler.let_go(std::exchange(held, nullptr));
  if (held != nullptr) {
    task.prefix = static_cast<int>(held->keys.size());
    const std::vector<KvPiece> pieces = pieces_of(side_.format, 0, task.prefix);
    task.keys = piece_keys(pieces, keys);
    task.blocks = locations_of(side_.format, *held, pieces);
    side_.count_held(*held);
    exports_[task.owner] = {held, {keys.begin(), keys.begin() + task.prefix}};
  }
  return connector.store(prompt, std::move(task), now_us);
}

void KvExports::drop(std::int64_t now_us) {
  for (const auto& connector : side_.connectors) {
    side_.events.report_changes(*connector);
    for (const std::uint64_t owner : connector->take_stored(now_us)) {
      Export ended = exports_.extract(owner).mapped();
      side_.report_stored(*ended.hold, ended.keys);
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
