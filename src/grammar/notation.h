// Base class of the EBNF and Lark parsers: position in the text, errors with line and column, and common
// tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "grammar/grammar.h"

namespace octavo::grammar {

class NotationReader {
 protected:
  // notation: name of the notation, for errors.
  NotationReader(Grammar& grammar, std::string_view text, std::string_view notation, std::string_view field)
      : g_(grammar), text_(text), notation_(notation), field_(field) {}

  // Returns an error if the text is too long or is not UTF-8.
  Result<void> readable() const;

  std::unexpected<Error> fail_at(std::size_t offset, const std::string& message) const;
  // Returns an error that names what was expected, and the character at the offset.
  std::unexpected<Error> expected_at(std::size_t offset, std::string_view expected) const;
  template <class... Args>
  std::unexpected<Error> error_at(std::size_t offset, fmt::format_string<Args...> text,
                                  Args&&... args) const {
    return fail_at(offset, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  std::unexpected<Error> error(fmt::format_string<Args...> text, Args&&... args) const {
    return fail_at(at_, fmt::format(text, std::forward<Args>(args)...));
  }

  std::unexpected<Error> expected(std::string_view what) const { return expected_at(at_, what); }

  bool done() const { return at_ >= text_.size(); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view s) { return text_.substr(at_).starts_with(s) && (at_ += s.size(), true); }

  std::optional<std::uint32_t> number();  // returns kUnbounded if the number is larger than that
  // Reads one character of a literal or class. It may be an escape.
  Result<std::uint32_t> character();
  // Reads a literal after its opening quote, and the closing quote.
  Result<std::string> quoted(char quote);
  Result<ExprId> special_token();
  // Errors for a quantifier that follows no expression, and for a quantifier that follows another one.
  std::unexpected<Error> nothing_to_repeat() const;
  std::unexpected<Error> second_quantifier() const;
  // Returns an expression for `min` to `max` repetitions of `part`; nullopt: no lower or no upper bound.
  Result<ExprId> repeated(ExprId part, std::optional<std::uint32_t> min, std::optional<std::uint32_t> max);

  Grammar& g_;
  const std::string_view text_, notation_, field_;
  std::size_t at_ = 0;

 private:
  Result<std::uint32_t> escape();
};

}  // namespace octavo::grammar
