#include "grammar/json_number.h"

#include <algorithm>
#include <cstdlib>

#include "grammar/limits.h"

namespace octavo::grammar {

namespace {

// Builds expressions for unsigned texts INT[.FRACTION] that are below, above or equal to a bound.
class NumberTexts {
  static constexpr std::uint32_t kFractionMax = 20;

 public:
  static constexpr std::uint32_t kZerosMax = 8;
  // bounded: limits the length of fractions. Otherwise a model could write zeros or a repeating decimal until
  // max_tokens.
  NumberTexts(Grammar& grammar, bool fractions, bool bounded)
      : g_(grammar), fractions_(fractions), fraction_max_(bounded ? kFractionMax : kUnbounded) {}

  ExprId digit(unsigned low = 0, unsigned high = 9) { return g_.byte_range('0' + low, '0' + high); }
  ExprId digits() { return g_.repeat(digit(), 0, kUnbounded); }
  // Returns an expression for zeros at positions where no other digit is possible or would make a difference.
  ExprId zeros() { return g_.repeat(g_.literal("0"), 0, kZerosMax); }
  ExprId fraction_digits() { return g_.repeat(digit(), 0, fraction_max_); }
  // Returns an expression for the digits between the point and the last nonzero digit. The number of
  // consecutive zeros is limited.
  ExprId fraction_before_digit() {
    return g_.sequence({zeros(), g_.repeat(g_.sequence({digit(1), zeros()}), 0, kUnbounded)});
  }
  ExprId any_fraction() {
    return fractions_ ? g_.optional(g_.sequence({g_.literal("."), digit(), fraction_digits()})) : g_.empty();
  }
  ExprId any_integer() { return g_.choice({g_.literal("0"), g_.sequence({digit(1), digits()})}); }
  ExprId any() { return g_.sequence({any_integer(), any_fraction()}); }

  // Returns an expression for all values below the bound and, unless `exclusive` is set, the bound itself.
  ExprId at_most(const Decimal& bound, bool exclusive) {
    const std::string whole = bound.integer.empty() ? "0" : bound.integer;
    std::vector<ExprId> out;
    if (whole.size() > 1) {
      out.push_back(g_.sequence({digit(), any_fraction()}));
      if (whole.size() > 2)
        out.push_back(g_.sequence(
            {digit(1), g_.repeat(digit(), 1, static_cast<std::uint32_t>(whole.size() - 2)), any_fraction()}));
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const auto d = static_cast<unsigned>(whole[i] - '0');
      const unsigned least = i == 0 && whole.size() > 1 ? 1 : 0;
      if (d > least)
        out.push_back(g_.sequence({g_.literal(whole.substr(0, i)), digit(least, d - 1),
                                   rest(whole.size() - i - 1), any_fraction()}));
    }
    out.push_back(g_.sequence({g_.literal(whole), fraction_at_most(bound.fraction, exclusive)}));
    return g_.choice(std::move(out));
  }

  ExprId at_least(const Decimal& bound, bool exclusive) {
    const std::string whole = bound.integer.empty() ? "0" : bound.integer;
    const auto size = static_cast<std::uint32_t>(whole.size());
    std::vector<ExprId> out{g_.sequence({digit(1), g_.repeat(digit(), size, kUnbounded), any_fraction()})};
    for (std::size_t i = 0; i < whole.size(); ++i)
      if (const auto d = static_cast<unsigned>(whole[i] - '0'); d < 9)
        out.push_back(g_.sequence(
            {g_.literal(whole.substr(0, i)), digit(d + 1), rest(whole.size() - i - 1), any_fraction()}));
    out.push_back(g_.sequence({g_.literal(whole), fraction_at_least(bound.fraction, exclusive)}));
    return g_.choice(std::move(out));
  }

 private:
  ExprId rest(std::size_t count) {
    return g_.repeat(digit(), static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(count));
  }

  // Returns an expression for the fractions that may follow if the integer part equals that of the bound.
  // bound: the digits of the bound's fraction.
  ExprId fraction_at_most(const std::string& bound, bool exclusive) {
    std::vector<ExprId> out;
    if (!bound.empty() || !exclusive) out.push_back(g_.empty());
    if (!fractions_) return g_.choice(std::move(out));
    if (bound.empty() && !exclusive) out.push_back(g_.sequence({g_.literal(".0"), zeros()}));
    for (std::size_t i = 0; i < bound.size(); ++i) {
      const std::string prefix = fmt::format(".{}", bound.substr(0, i));
      if (i > 0) out.push_back(g_.literal(prefix));
      if (const auto d = static_cast<unsigned>(bound[i] - '0'); d > 0)
        out.push_back(g_.sequence({g_.literal(prefix), digit(0, d - 1), fraction_digits()}));
    }
    if (!bound.empty() && !exclusive)
      out.push_back(g_.sequence({g_.literal(fmt::format(".{}", bound)), zeros()}));
    return g_.choice(std::move(out));
  }

  ExprId fraction_at_least(const std::string& bound, bool exclusive) {
    std::vector<ExprId> out;
    if (bound.empty() && !exclusive) return any_fraction();
    if (!fractions_) return g_.nothing();
    for (std::size_t i = 0; i < bound.size(); ++i)
      if (const auto d = static_cast<unsigned>(bound[i] - '0'); d < 9)
        out.push_back(
            g_.sequence({g_.literal(fmt::format(".{}", bound.substr(0, i))), digit(d + 1), fraction_digits()}));
    const ExprId more = exclusive ? g_.sequence({zeros(), digit(1), fraction_digits()}) : fraction_digits();
    out.push_back(g_.sequence({g_.literal(fmt::format(".{}", bound)), more}));
    return g_.choice(std::move(out));
  }

  Grammar& g_;
  const bool fractions_;
  const std::uint32_t fraction_max_;
};

// Returns the exponents, such as "e-07", for which all numbers d.ddd (from 1 to below 10) with this exponent
// are between the bounds.
std::vector<std::string> powers_between(const std::optional<NumberLimits::Bound>& least,
                                        const std::optional<NumberLimits::Bound>& most) {
  constexpr int kPowerMax = 99;
  const auto power = [](int k) { return *Decimal::parse(fmt::format("1e{}", k)); };
  int low = -kPowerMax, high = kPowerMax;
  if (least && !least->value.is_zero())
    while (low <= kPowerMax && !(least->exclusive ? power(low) > least->value : power(low) >= least->value))
      ++low;
  if (most)
    while (high >= low && power(high + 1) > most->value) --high;
  std::vector<std::string> powers;
  for (int k = low; k <= high; ++k) {
    const int digits = std::abs(k);
    std::vector<std::string> spelled{fmt::format("{}", digits)};
    if (digits < 10) spelled.push_back(fmt::format("0{}", digits));
    for (const std::string& text : spelled)
      for (const std::string_view e : {"e", "E"}) {
        if (k < 0) powers.push_back(fmt::format("{}-{}", e, text));
        if (k >= 0) powers.push_back(fmt::format("{}+{}", e, text));
        if (k >= 0) powers.push_back(fmt::format("{}{}", e, text));
      }
  }
  return powers;
}

// Returns an expression for texts such as 1.5e-07, which programs write for small and large numbers. plain:
// allowed texts before the exponent; null: all.
std::optional<ExprId> exponent_texts(Grammar& g, std::vector<std::string> powers, const Automaton* plain) {
  if (powers.empty()) return std::nullopt;
  Grammar scratch;
  NumberTexts texts(scratch, true, true);
  auto mantissas = regular_automaton(scratch, scratch.sequence({texts.digit(1), texts.any_fraction()}), kDfaStatesMax);
  if (mantissas && plain != nullptr) mantissas = combine(*mantissas, *plain, Combine::intersection, kDfaStatesMax);
  if (!mantissas || is_empty(*mantissas)) return std::nullopt;
  return g.sequence({g.leaf(*std::move(mantissas)), g.leaf(automaton_of(std::move(powers)))});
}

// Returns an automaton for the texts whose value is a multiple of divisor / 10^scale. all: allows any number
// of trailing zeros; needed if the texts are excluded.
Automaton multiples_of(std::uint32_t divisor, std::size_t scale, bool fractions, bool all) {
  Automaton out;
  const auto add_block = [&] {
    const auto first = static_cast<StateId>(out.states.size());
    out.states.resize(out.states.size() + divisor);
    return first;
  };
  const auto link = [&](StateId from, unsigned byte, StateId to) {
    out.states[from].edges.push_back(
        {Symbol::bytes, static_cast<std::uint8_t>(byte), static_cast<std::uint8_t>(byte), 0, to});
  };
  // Returns true if remainder r becomes divisible when `missing` zeros are appended.
  const auto divides = [&](std::uint32_t r, std::size_t missing) {
    for (; missing > 0; --missing) r = r * 10 % divisor;
    return r == 0;
  };
  out.states.resize(2);  // state 0: start; state 1: after a leading zero
  const StateId zero = 1, whole = add_block();
  // first state after the point, for each number of digits read
  std::vector<StateId> after_digits;
  if (fractions)
    for (std::size_t j = 0; j <= scale; ++j) after_digits.push_back(add_block());
  // State that reads additional zeros at the end, which do not change the value.
  const auto zeros = static_cast<StateId>(out.states.size());
  out.states.resize(zeros + (fractions ? NumberTexts::kZerosMax : 0));
  for (StateId z = zeros; z < out.states.size(); ++z) {
    out.states[z].accepting = true;
    if (z + 1 < out.states.size() || all) link(z, '0', z + 1 < out.states.size() ? z + 1 : z);
  }
  out.states[zero].accepting = true;
  link(0, '0', zero);
  for (unsigned d = 1; d < 10; ++d) link(0, '0' + d, whole + d % divisor);
  if (fractions) link(zero, '.', after_digits[0]);
  for (std::uint32_t r = 0; r < divisor; ++r) {
    out.states[whole + r].accepting = divides(r, scale);
    if (fractions) link(whole + r, '.', after_digits[0] + r);
    for (unsigned d = 0; d < 10; ++d) link(whole + r, '0' + d, whole + (r * 10 + d) % divisor);
    for (std::size_t j = 0; j < after_digits.size(); ++j) {
      const StateId state = after_digits[j] + r;
      out.states[state].accepting = j > 0 && divides(r, scale - j);
      if (j == scale && r == 0) link(state, '0', zeros);
      if (j < scale)
        for (unsigned d = 0; d < 10; ++d) link(state, '0' + d, after_digits[j + 1] + (r * 10 + d) % divisor);
    }
  }
  for (State& state : out.states) std::ranges::sort(state.edges);
  return minimize(trim(out));
}

std::optional<std::uint64_t> small(const std::string& digits) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
    if (value > kMultipleOfMax) return std::nullopt;
  }
  return value;
}

// For divisors such as 7 (but not 25), more zeros may never make a text a multiple, so the length of texts
// must be limited. Returns the largest allowed text, or "" for no limit. Larger divisors get fewer digits,
// because the automaton has a state for each remainder and digit.
std::string largest_multiple(const std::vector<Decimal>& multiples) {
  constexpr std::uint64_t kLargeDivisor = 500;
  std::string largest;
  for (const Decimal& multiple : multiples) {
    const std::uint64_t divisor = small(*multiple.scaled(multiple.fraction.size())).value_or(1);
    std::uint64_t rest = divisor;
    for (const std::uint64_t factor : {2, 5})
      while (rest % factor == 0) rest /= factor;
    if (rest > 1 && (largest.empty() || divisor > kLargeDivisor))
      largest = std::string(divisor > kLargeDivisor ? 8 : 12, '9');
  }
  return largest;
}

// Returns an automaton for the texts of absolute values between the bounds.
std::expected<Automaton, NumberProblem> magnitudes(const NumberLimits& limits,
                                                   const std::optional<NumberLimits::Bound>& least,
                                                   const std::optional<NumberLimits::Bound>& most) {
  Grammar g;
  NumberTexts texts(g, limits.fractions, limits.min || limits.max);
  std::vector<ExprId> factors;
  if (least && (!least->value.is_zero() || least->exclusive))
    factors.push_back(texts.at_least(least->value, least->exclusive));
  if (most) {
    factors.push_back(texts.at_most(most->value, most->exclusive));
  } else if (const std::string largest = largest_multiple(limits.multiples); !largest.empty()) {
    // This limit does not apply if the minimum is above it or has almost its length.
    if (!least || least->value < *Decimal::parse(largest.substr(1)))
      factors.push_back(texts.at_most(*Decimal::parse(largest), false));
  }
  if (factors.empty()) factors.push_back(texts.any());
  if (!limits.integers)
    factors.push_back(g.sequence({texts.any_integer(), g.literal("."), texts.fraction_before_digit(),
                                  texts.digit(1), texts.digits()}));
  std::optional<Automaton> all;
  for (const ExprId factor : factors) {
    auto next = regular_automaton(g, factor, kDfaStatesMax);
    if (next && all) next = combine(*all, *next, Combine::intersection, kDfaStatesMax);
    if (!next) return std::unexpected(NumberProblem::too_large);
    all = std::move(next);
  }
  for (const auto* divisors : {&limits.multiples, &limits.non_multiples})
    for (const Decimal& divisor : *divisors) {
      const std::size_t scale = divisor.fraction.size();
      const auto scaled = small(*divisor.scaled(scale));
      if (!scaled || scale > 20) return std::unexpected(NumberProblem::multiple_of);
      const bool wanted = divisors == &limits.multiples;
      all = combine(*all, multiples_of(static_cast<std::uint32_t>(*scaled), scale, limits.fractions, !wanted),
                    wanted ? Combine::intersection : Combine::difference, kDfaStatesMax);
      if (!all) return std::unexpected(NumberProblem::too_large);
    }
  return *std::move(all);
}

}  // namespace

std::expected<ExprId, NumberProblem> number_text(Grammar& g, const NumberLimits& limits) {
  NumberTexts texts(g, limits.fractions, false);
  if (!limits.min && !limits.max && !limits.has_divisors() && limits.integers) {
    const ExprId sign = g.optional(g.literal("-"));
    if (!limits.fractions) return g.sequence({sign, texts.any_integer()});
    const ExprId e = g.choice({g.literal("e"), g.literal("E")}),
                 e_sign = g.optional(g.choice({g.literal("+"), g.literal("-")}));
    const ExprId exponent = g.sequence({e, e_sign, texts.digit(), texts.digits()});
    return g.sequence({sign, texts.any(), g.optional(exponent)});
  }
  using Bound = NumberLimits::Bound;
  const auto flip = [](const std::optional<Bound>& bound) -> std::optional<Bound> {
    return bound ? std::optional(Bound{bound->value.negated(), bound->exclusive}) : std::nullopt;
  };
  const auto non_negative = [](const std::optional<Bound>& bound) {
    return bound && !bound->value.negative ? bound : std::nullopt;
  };
  std::vector<ExprId> signs;
  for (const bool negative : {false, true}) {
    const std::optional<Bound> least = negative ? flip(limits.max) : limits.min,
                               most = negative ? flip(limits.min) : limits.max;
    if (most && (most->value.negative || (negative && most->value.is_zero()))) continue;
    auto texts_of = magnitudes(limits, non_negative(least), most);
    if (!texts_of) return std::unexpected(texts_of.error());
    std::vector<ExprId> bodies;
    if (limits.integers && limits.fractions && !limits.has_divisors())
      if (const auto with_exponent = exponent_texts(g, powers_between(non_negative(least), most),
                                                    limits.exponents ? nullptr : &*texts_of))
        bodies.push_back(*with_exponent);
    bodies.push_back(g.leaf(*std::move(texts_of)));
    const ExprId body = g.choice(std::move(bodies));
    signs.push_back(negative ? g.sequence({g.literal("-"), body}) : body);
  }
  return g.choice(std::move(signs));
}

bool within(const NumberLimits& limits, const Decimal& value) {
  if (limits.min && (value < limits.min->value || (limits.min->exclusive && value == limits.min->value)))
    return false;
  if (limits.max && (value > limits.max->value || (limits.max->exclusive && value == limits.max->value)))
    return false;
  if (value.is_integer() ? !limits.integers : !limits.fractions) return false;
  // Returns whether the value is a multiple, or nullopt if the divisor is larger than kMultipleOfMax.
  const auto is_multiple = [&](const Decimal& multiple) -> std::optional<bool> {
    const std::size_t scale = std::max(value.fraction.size(), multiple.fraction.size());
    const auto divisor = small(*multiple.scaled(scale));
    return divisor ? std::optional(remainder(*value.scaled(scale), *divisor) == 0) : std::nullopt;
  };
  return std::ranges::all_of(limits.multiples, [&](const Decimal& d) { return is_multiple(d) == true; }) &&
         std::ranges::all_of(limits.non_multiples, [&](const Decimal& d) { return is_multiple(d) == false; });
}

}  // namespace octavo::grammar
