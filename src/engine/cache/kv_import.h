// Import of KV blocks for one request, which waits until the blocks of its prompt are loaded. This file has
// the states of the import and the changes between them:
//
//   state              | another try       | load ends | load is stuck | request ends
//   LookingUp          | any but GivenUp   |           |               | Done
//   NoRoom             | any but GivenUp   |           |               | Done
//   Behind             | any but GivenUp   |           |               | Done
//   Loading            |                   | Done      | GivenUp       | stays, cancelled
//   GivenUp            |                   | Done      |               | stays, cancelled
//   Done               |                   |           |               | stays
//
// In the states GivenUp and Done, the request may be scheduled.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "engine/loop/answer.h"
#include "schedule/prefix_hold.h"
#include "transfer/kv_pieces.h"

namespace octavo {

struct KvImport {
  struct LookingUp {};  // a connector has not reported yet how many blocks it has
  struct NoRoom {};     // the cache has no free blocks
  struct Behind {};     // another request is loading blocks of this prompt
  // The connector writes `pieces` into the blocks of `hold`.
  struct Transfer {
    PrefixHold* hold;
    std::vector<KvPiece> pieces;
  };
  struct Loading : Transfer {};
  struct GivenUp : Transfer {};  // the load is stuck, so the engine computes the prompt itself
  struct Done {
    PrefixHold* hold = nullptr;  // loaded blocks; null: nothing was loaded, or the blocks were freed
  };
  using State = std::variant<LookingUp, NoRoom, Behind, Loading, GivenUp, Done>;

  std::shared_ptr<Accepted> accepted;
  std::vector<Hash128> keys{};
  int cached = 0;
  std::int64_t give_up_us = 0;  // time until which the request waits for free blocks, in microseconds
  State state = Done{};
  std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);

  template <class Other>
  bool is() const {
    return std::holds_alternative<Other>(state);
  }
  bool may_start() const { return is<Done>() || is<GivenUp>(); }
  bool ended() const { return accepted->scheduled || accepted->unfinished == 0; }
  Transfer* transfer() {
    if (auto* loading = std::get_if<Loading>(&state)) return loading;
    return std::get_if<GivenUp>(&state);
  }
  bool has_room() const {
    const auto* done = std::get_if<Done>(&state);
    return done != nullptr && done->hold != nullptr;
  }
};

}  // namespace octavo
