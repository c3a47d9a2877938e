#include "grammar/made_states.h"

#include <array>
#include <bit>

namespace octavo::grammar {

StateId MadeStates::start(RuleId rule) {
  const Tables::RuleRow& row = tables_.rules[rule];
  switch (row.kind) {
    case Tables::RuleRow::Kind::automaton:
      return row.start;
    case Tables::RuleRow::Kind::counted:
      return of(Counter{rule, row.min, row.max});
    case Tables::RuleRow::Kind::any_order:
      return of(Parts{rule, 0, false, tables_.any_order(rule).no_parts()});
  }
  return row.start;
}

StateId MadeStates::of(const Counter& counter) {
  return numbered(std::array{counter.rule, counter.min, counter.max}, counter.max == 0);
}

StateId MadeStates::of(const Parts& parts) {
  std::vector<std::uint32_t> key{parts.rule, parts.count, parts.separated};
  key.insert(key.end(), parts.read.begin(), parts.read.end());
  return numbered(key, !parts.separated && !continues(parts));
}

MadeStates::Parts MadeStates::parts(StateId state) const {
  const auto words = key(state);
  return {words[0], words[1], words[2] != 0, {words.begin() + kCounterWords, words.end()}};
}

std::uint32_t MadeStates::missing(const Parts& parts) const {
  const PartSet& required = tables_.any_order(parts.rule).required;
  int count = 0;
  for (std::size_t i = 0; i < required.size(); ++i) count += std::popcount(required[i] & ~parts.read[i]);
  return static_cast<std::uint32_t>(count);
}

bool MadeStates::may_end(const Parts& parts) const {
  return !parts.separated && parts.count >= tables_.any_order(parts.rule).min && missing(parts) == 0;
}

bool MadeStates::continues(const Parts& parts) const {
  const Tables::AnyOrder& row = tables_.any_order(parts.rule);
  const std::uint32_t missing = this->missing(parts);
  if (missing > 0) return true;
  if (!has_room(parts, missing)) return false;
  std::size_t read = 0;
  for (const std::uint32_t word : parts.read) read += static_cast<std::size_t>(std::popcount(word));
  return row.others || read < row.parts.size();
}

}  // namespace octavo::grammar
