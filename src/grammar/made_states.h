// Parser states that are created only while a text is parsed, because there are too many possible states.
// Counted rules need one for each number of remaining repetitions; rules with parts in any order need one for
// each set of parts read so far. Equal states have equal ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "grammar/intern_table.h"
#include "grammar/key_table.h"
#include "grammar/tables.h"

namespace octavo::grammar {

class MadeStates {
 public:
  // Remaining repetitions of a counted rule: at least `min` and at most `max` must follow.
  struct Counter {
    RuleId rule;
    std::uint32_t min, max;
    auto operator<=>(const Counter&) const = default;
  };
  // Progress in a rule with parts in any order.
  struct Parts {
    RuleId rule;
    std::uint32_t count;  // number of parts read; limited to AnyOrder::count_max()
    bool separated;       // the last thing read was a separator, so a part must follow
    PartSet read;
  };

  MadeStates(const Tables& tables, StateId first) : tables_(tables), first_(first) {}

  StateId start(RuleId rule);
  StateId of(const Counter& counter);
  StateId of(const Parts& parts);
  bool is_counter(StateId state) const { return key(state).size() == kCounterWords; }
  Counter counter(StateId state) const {
    const auto words = key(state);
    return {words[0], words[1], words[2]};
  }
  Parts parts(StateId state) const;
  KeyTable::Key key(StateId state) const { return keys_[state - first_]; }
  RuleId rule(StateId state) const { return key(state)[0]; }

  bool may_end(const Parts& parts) const;
  bool must_end(StateId state) const { return must_end_[state - first_]; }
  // Calls visit(rule, next state) for each part that can follow, or only for the separator if it must follow.
  template <class Visit>
  void for_next(const Parts& parts, Visit&& visit);

  std::size_t byte_size() const { return keys_.byte_size() + must_end_.size() / 8; }

 private:
  static constexpr std::size_t kCounterWords = 3;  // keys of Parts have more words

  std::uint32_t missing(const Parts& parts) const;
  bool continues(const Parts& parts) const;
  StateId numbered(KeyTable::Key key, bool must_end) {
    const std::uint32_t number = keys_.number(key);
    if (number == must_end_.size()) must_end_.push_back(must_end);
    return first_ + number;
  }
  // missing: number of required parts that were not read. Returns whether one more part is allowed besides
  // these.
  bool has_room(const Parts& parts, std::uint32_t missing) const {
    const Tables::AnyOrder& row = tables_.any_order(parts.rule);
    return row.max == kUnbounded || parts.count + missing < row.max;
  }

  const Tables& tables_;
  const StateId first_;
  KeyTable keys_;
  std::vector<bool> must_end_;
};

template <class Visit>
void MadeStates::for_next(const Parts& parts, Visit&& visit) {
  const Tables::AnyOrder& row = tables_.any_order(parts.rule);
  Parts after = parts;
  if (parts.count > 0 && !parts.separated) {
    if (!continues(parts)) return;
    after.separated = true;
    return visit(row.separator, of(after));
  }
  after.separated = false;
  after.count = std::min(parts.count + 1, row.count_max());
  const bool room = has_room(parts, missing(parts));
  for (std::size_t i = 0; i < row.parts.size(); ++i) {
    if (contains(parts.read, i) || !(room || contains(row.required, i))) continue;
    add_part(after.read, i);
    visit(row.parts[i], of(after));
    after.read[i / 32] = parts.read[i / 32];
  }
  if (row.others && room) visit(*row.others, of(after));
}

}  // namespace octavo::grammar
