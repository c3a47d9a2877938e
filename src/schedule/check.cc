// CHECKs the invariants of the scheduler, for tests and fuzzers.
#include <algorithm>

#include "base/check.h"
#include "schedule/scheduler.h"

namespace octavo {

void Scheduler::check() const {
  cache_.pool.check();

  CHECK(unused_.size() + running_.size() + waiting_.size() == sequences_.size());
  CHECK(std::ranges::all_of(unused_, [&](Slot s) { return at(s).state == Sequence::State::unused; }));
  CHECK(std::ranges::all_of(waiting_, [&](Slot s) { return at(s).state == Sequence::State::waiting; }));
  CHECK(std::ranges::all_of(running_, [&](Slot s) { return at(s).state == Sequence::State::running; }));
  CHECK(std::ranges::is_sorted(running_, [&](Slot a, Slot b) { return before(a, b); }));

  // Checks that each reference to a block belongs to a block table, a prefix hold or a deferred block, and
  // that the free blocks suffice for all promises.
  std::vector<int> references(static_cast<std::size_t>(cache_.pool.total()), 0);
  int promised = 0;
  std::vector<bool> states(static_cast<std::size_t>(options_.max_num_seqs + options_.draft_states));
  int states_used = 0;
  const auto use_state = [&](int slot) {
    CHECK(!states.at(static_cast<std::size_t>(slot)), "state {} has two uses", slot);
    states[static_cast<std::size_t>(slot)] = true;
    ++states_used;
  };
  for (const Slot slot : running_) {
    const Sequence& s = at(slot);
    promised += promise(s);
    use_state(s.recurrent.slot);
    for (const int state : s.recurrent.drafts) use_state(state);
    CHECK(s.computed <= s.planned && s.planned <= s.length() && s.length() <= s.spec.max_total_tokens,
          "computed {}, planned {}, length {} of {}", s.computed, s.planned, s.length(),
          s.spec.max_total_tokens);
    for (int g = 0; g < cache_.group_count(); ++g) {
      const auto table = s.blocks.table(g);
      CHECK(static_cast<int>(table.size()) >= cache_.blocks_for(s.planned));
      for (std::size_t i = 0; i < table.size(); ++i) {
        if (table[i] != kNoBlock) ++references[static_cast<std::size_t>(table[i])];
        CHECK(table[i] != kNoBlock || static_cast<int>(i) < cache_.first_needed(g, s.computed),
              "group {} block {} is gone at position {}", g, i, s.computed);
      }
    }
  }
  if (cache_.saved_states) {
    int writing = 0;
    for (const Flight& flight : in_flight_.steps)
      writing += static_cast<int>(
          std::ranges::count_if(flight.sequences, [](const Launched& l) { return l.state_to != kNoState; }));
    for (const auto& [hold, owned] : holds_.all) writing += hold->state_slot != kNoState && !hold->is_whole();
    CHECK(writing == cache_.saved_states->writing(), "{} saved states are being written, {} counted", writing,
          cache_.saved_states->writing());
  }
  CHECK(states_.free() + states_used == std::ssize(states));
  CHECK(std::ranges::all_of(
      waiting_, [&](Slot s) { return at(s).recurrent.slot == kNoState && at(s).recurrent.drafts.empty(); }));
  for (const Slot slot : waiting_)
    for (int g = 0; g < cache_.group_count(); ++g) CHECK(at(slot).blocks.table(g).empty());
  check_holds(references);
  for (const DeferredBlock& d : in_flight_.blocks) ++references[static_cast<std::size_t>(d.block)];
  for (BlockId b = 0; b < cache_.pool.total(); ++b)
    CHECK(references[static_cast<std::size_t>(b)] == cache_.pool.references(b),
          "block {} has {} users, {} counted", b, cache_.pool.references(b),
          references[static_cast<std::size_t>(b)]);
  CHECK(promised + lent() <= cache_.pool.free(), "{} blocks promised, {} lent, {} free", promised, lent(),
        cache_.pool.free());
  CHECK(!in_flight_.steps.empty() || in_flight_.blocks.empty());
}

// Adds the references of all holds, and CHECKs the counts of lent().
void Scheduler::check_holds(std::vector<int>& references) const {
  std::vector<int> held(references.size(), 0);
  for (const auto& [hold, owned] : holds_.all)
    for (int g = 0; g < cache_.group_count(); ++g)
      for (const BlockId block : hold->blocks.table(g)) {
        if (block == kNoBlock) continue;
        ++references[static_cast<std::size_t>(block)];
        if (cache_.group(g).window != 0) ++held[static_cast<std::size_t>(block)];
      }
  CHECK(held == holds_.of_block, "the holds of blocks are not counted");
  int extra = 0;
  for (const int holds : held) extra += std::max(holds - 1, 0);
  CHECK(extra == holds_.extra, "{} more holds than blocks, {} counted", extra, holds_.extra);
}

}  // namespace octavo
