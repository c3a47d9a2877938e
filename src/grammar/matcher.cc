#include "grammar/matcher.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "grammar/limits.h"

namespace octavo::grammar {

namespace {
constexpr std::size_t kJumpBytesMax = 4096;

// Runs a function of the try_ kind. Returns nullopt after bad_alloc.
template <class Work>
auto at_once(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace

// The first configuration has the same id in all epochs.
Matcher::Matcher(std::shared_ptr<const CompiledGrammar> grammar)
    : grammar_(std::move(grammar)), configs_(1, ParseStates::kStartConfig) {}

Result<Matcher::Access> Matcher::enter() {
  const CompiledGrammar& g = *grammar_;
  Access access(g, Lock(g.mutex_));
  // Parsing this text exceeded a limit before. A new attempt would also fail, and take the same time.
  if (too_large_) return too_ambiguous();
  if (!g.table_ || g.table_->byte_size() > g.parser_bytes_allowed(tokens_.size())) {
    g.table_.reset();
    g.table_ = std::make_unique<MaskTable>(g.tables_, *g.vocabulary_);
    g.longest_text_ = 0;
    ++g.epoch_;
  }
  g.learned_bytes_.store(g.table_->byte_size(), std::memory_order_relaxed);
  ParseStates& states = g.table_->states();
  if (epoch_ != g.epoch_) {
    states.allow(kWorkMax + kWorkPerToken * static_cast<std::int64_t>(tokens_.size()));
    configs_.resize(1);
    for (const TokenId token : tokens_) configs_.push_back(g.table_->step_token(current(), token));
    too_large_ = states.exhausted() || g.table_->byte_size() > g.parser_bytes_allowed(tokens_.size());
    if (too_large_) return too_ambiguous();
    epoch_ = g.epoch_;
  }
  states.allow(kWorkMax);
  return access;
}

std::optional<Matcher::Access> Matcher::try_enter() {
  const CompiledGrammar& g = *grammar_;
  Lock lock(g.mutex_, std::try_to_lock);
  if (!lock || too_large_ || !g.table_) return std::nullopt;
  if (g.table_->byte_size() > g.parser_bytes_allowed(tokens_.size())) return std::nullopt;
  if (epoch_ != g.epoch_ && !tokens_.empty()) return std::nullopt;
  epoch_ = g.epoch_;
  g.learned_bytes_.store(g.table_->byte_size(), std::memory_order_relaxed);
  g.table_->states().allow(kStepWork, 1);
  return Access(g, std::move(lock));
}

std::unexpected<Error> Matcher::too_ambiguous() const {
  return failure(ErrorCode::resource_exhausted,
                 "the grammar is too ambiguous after {} tokens of the text: one step of the parser may take "
                 "at most {} units of work, and the parser at most {} bytes",
                 tokens_.size(), kWorkMax, grammar_->parser_bytes_allowed(tokens_.size()));
}

Result<void> Matcher::fill_mask(std::span<std::int32_t> mask) {
  if (terminated_) return fill(mask);
  TRY(const auto access, enter());
  return fill(mask);
}

std::optional<Result<void>> Matcher::try_fill_mask(std::span<std::int32_t> mask) {
  if (terminated_) return fill(mask);
  if (watches_items()) return std::nullopt;
  return at_once([&]() -> std::optional<Result<void>> {
    const auto access = try_enter();
    if (!access) return std::nullopt;
    Result<void> filled = fill(mask);
    if (exhausted()) return std::nullopt;
    return filled;
  });
}

Result<void> Matcher::fill(std::span<std::int32_t> mask) {
  const std::size_t words = grammar_->vocabulary_->mask_words();
  CHECK(mask.size() >= words, "a mask of {} words for a vocabulary of {}", mask.size(),
        grammar_->vocabulary_->size());
  std::ranges::fill(mask.subspan(words), 0);
  const auto used = mask.first(words);
  if (terminated_) {
    std::ranges::fill(used, 0);
    return failure(ErrorCode::internal, "the text has ended: no token may follow");
  }
  const std::optional<bool> any = grammar_->table_->fill(current(), used);
  if (!any) return too_ambiguous();
  const bool left = *any && (!watches_items() || leave_out_repeated_items(used));
  if (exhausted()) return too_ambiguous();
  if (!left)
    return failure(
        ErrorCode::resource_exhausted,
        "no token of the vocabulary continues the text after {} tokens; change the grammar so that "
        "the model's tokens can write its texts",
        tokens_.size());
  return {};
}

bool Matcher::accept(TokenId token) {
  if (terminated_ || !grammar_->vocabulary_->contains(token)) return false;
  const auto access = enter();
  return access && take(token);
}

std::optional<bool> Matcher::try_accept(TokenId token) {
  if (terminated_ || !grammar_->vocabulary_->contains(token)) return false;
  if (watches_items()) return std::nullopt;
  return at_once([&]() -> std::optional<bool> {
    const auto access = try_enter();
    if (!access) return std::nullopt;
    const bool taken = take(token);
    if (!taken && exhausted()) return std::nullopt;
    return taken;
  });
}

bool Matcher::take(TokenId token) {
  MaskTable& table = *grammar_->table_;
  if (grammar_->vocabulary_->is_eos(token) && table.states().accepting(current())) {
    configs_.push_back(current());
    tokens_.push_back(token);
    terminated_ = true;
    return true;
  }
  const ConfigId next = table.step_token(current(), token);
  if (next == kDeadConfig) return false;
  if (watches_items() &&
      (!items_fit(token, items_.rests()) || !items_take(items_, current(), token) || exhausted()))
    return false;
  // If the second push_back() throws bad_alloc, configs_ has one element too many. That is harmless, because
  // the table is deleted and configs_ computed again.
  configs_.push_back(next);
  tokens_.push_back(token);
  return true;
}

void Matcher::rollback(std::size_t tokens) {
  if (tokens == 0) return;
  tokens_.resize(tokens_.size() - std::min(tokens, tokens_.size()));
  configs_.resize(tokens_.size() + 1);
  terminated_ = too_large_ = false;
  if (!watches_items()) return;
  items_ = {};
  if (const auto access = enter())
    for (std::size_t i = 0; i < tokens_.size(); ++i) items_take(items_, configs_[i], tokens_[i]);
}

namespace {

// Returns a function f(i) that returns whether bytes[i] begins an array with unique items. i must ascend from
// call to call.
auto opens_unique(ParseStates& states, ConfigId config, std::string_view bytes) {
  return [&states, config, bytes, at = std::size_t{0}](std::size_t i) mutable {
    for (; at <= i; ++at) config = states.step(config, static_cast<std::uint8_t>(bytes[at]));
    return states.opens_unique(config);
  };
}

}  // namespace

bool Matcher::items_take(UniqueItems& items, ConfigId before, TokenId token) const {
  if (grammar_->vocabulary_->is_special(token)) return true;
  const std::string_view bytes = grammar_->vocabulary_->bytes(token);
  return items.take(bytes, opens_unique(grammar_->table_->states(), before, bytes));
}

// Returns false if an item would be repeated after the token. Also returns false if a string would have its
// maximum length and equal an earlier item, because that string could not end.
bool Matcher::items_fit(TokenId token, std::span<const std::string> rests) const {
  if (grammar_->vocabulary_->is_special(token)) return true;
  const std::string_view bytes = grammar_->vocabulary_->bytes(token);
  // Inside a string, only '"' can end an item. Outside of arrays with unique items, a token can only repeat
  // an item if it has '[' and ','.
  if (items_.in_string() && !bytes.contains('"'))
    return std::ranges::find(rests, bytes) == rests.end() || !only_ends_string(bytes);
  if (!items_.active() && (!bytes.contains('[') || !bytes.contains(','))) return true;
  ParseStates& states = grammar_->table_->states();
  return items_.fits(bytes, opens_unique(states, current(), bytes)) &&
         !(items_.repeats(bytes, opens_unique(states, current(), bytes)) && only_ends_string(bytes));
}

// Returns true if only a quote can follow the bytes.
bool Matcher::only_ends_string(std::string_view bytes) const {
  ParseStates& states = grammar_->table_->states();
  ConfigId at = current();
  for (const char byte : bytes) at = states.step(at, static_cast<std::uint8_t>(byte));
  return states.forced_byte(at) == '"';
}

// Removes tokens that would repeat an array item. Returns false if no token is left.
bool Matcher::leave_out_repeated_items(std::span<std::int32_t> mask) const {
  grammar_->table_->states().allow(kWorkMax);
  const std::vector<std::string> rests = items_.rests();
  bool left = false;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    auto word = static_cast<std::uint32_t>(mask[i]);
    for (std::uint32_t rest = word; rest != 0; rest &= rest - 1) {
      const int bit = std::countr_zero(rest);
      if (!items_fit(static_cast<TokenId>(i * 32) + bit, rests)) word &= ~(std::uint32_t{1} << bit);
    }
    mask[i] = static_cast<std::int32_t>(word);
    left = left || word != 0;
  }
  return left;
}

std::string Matcher::jump_forward() {
  if (terminated_) return {};
  const auto access = enter();
  return access ? forced_text() : std::string();
}

std::string Matcher::forced_text() {
  std::string forced;
  // Inside an array with unique items no bytes are forced, because they might repeat an item.
  if (items_.active()) return forced;
  ParseStates& states = grammar_->table_->states();
  ConfigId at = current();
  while (forced.size() < kJumpBytesMax) {
    const int byte = states.forced_byte(at);
    if (byte < 0) break;
    forced.push_back(static_cast<char>(byte));
    at = states.step(at, static_cast<std::uint8_t>(byte));
    if (byte == '[' && states.opens_unique(at)) break;
  }
  return forced;
}

std::vector<TokenId> Matcher::forced_tokens() { return settled(jump_forward()); }

std::optional<std::vector<TokenId>> Matcher::try_forced_tokens() {
  if (terminated_) return std::vector<TokenId>{};
  return at_once([&]() -> std::optional<std::vector<TokenId>> {
    std::string forced;
    {
      const auto access = try_enter();
      if (!access) return std::nullopt;
      forced = forced_text();
      if (exhausted()) return std::nullopt;
    }
    if (forced.size() <= kStepBytes) return settled(forced);
    return grammar_->vocabulary_->known_settled_tokens(forced);
  });
}

std::vector<TokenId> Matcher::settled(const std::string& forced) const {
  return forced.size() < 2 ? std::vector<TokenId>{} : grammar_->vocabulary_->settled_tokens(forced);
}

bool Matcher::can_terminate() {
  if (terminated_) return true;
  const auto access = enter();
  return access && grammar_->table_->states().accepting(current());
}

}  // namespace octavo::grammar
