// Errors are return values; Octavo throws no exceptions.
//
//   Result<Tokenizer> t = Tokenizer::load(path);
//   if (!t) return std::unexpected(t.error());      // or: TRY(Tokenizer t, Tokenizer::load(path));
//
// An Error never means a bug in Octavo. CHECK (base/check.h) detects bugs.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace octavo {

// Kinds of errors. Tables map them to exit codes, HTTP statuses and finish reasons.
enum class ErrorCode : std::uint8_t {
  invalid_argument,  // the caller's input is wrong: exit code 2, HTTP 400
  not_found,         // a file, model or route does not exist: HTTP 404
  // valid input that Octavo does not support
  unsupported,
  corrupt,             // a file is damaged or contradicts itself
  io,                  // the operating system reported an error
  resource_exhausted,  // a limit is reached, such as a full queue or pool: HTTP 429 or 503
  unavailable,         // the server is shutting down or not ready yet: HTTP 503
  // a failure that the caller did not cause: HTTP 500
  internal,
};

std::string_view name(ErrorCode code);

struct Error {
  ErrorCode code;
  // one line for people; contains the limit that was exceeded
  std::string message;
  std::string field;  // name of the invalid input field, or ""
};

template <class T = void>
using Result = std::expected<T, Error>;

// Makes an error to return: failure(code, "{} blocks needed, {} free", a, b).
template <class... Args>
std::unexpected<Error> failure(ErrorCode code, fmt::format_string<Args...> text, Args&&... args) {
  return std::unexpected(Error{code, fmt::format(text, std::forward<Args>(args)...), {}});
}

// Like failure(), with the name of the invalid input field.
template <class... Args>
std::unexpected<Error> field_failure(std::string_view field, ErrorCode code, fmt::format_string<Args...> text,
                                     Args&&... args) {
  return std::unexpected(Error{code, fmt::format(text, std::forward<Args>(args)...), std::string(field)});
}

// The most common case: invalid_argument on `field`.
template <class... Args>
std::unexpected<Error> invalid(std::string_view field, fmt::format_string<Args...> text, Args&&... args) {
  return field_failure(field, ErrorCode::invalid_argument, text, std::forward<Args>(args)...);
}

}  // namespace octavo

#define OCTAVO_CONCAT_INNER(a, b) a##b
#define OCTAVO_CONCAT(a, b) OCTAVO_CONCAT_INNER(a, b)
#define OCTAVO_TRY_AS(result, declaration, ...)                   \
  auto result = (__VA_ARGS__);                                    \
  if (!result) return std::unexpected(std::move(result.error())); \
  declaration = *std::move(result)

// TRY(auto x, f()): unwraps a Result, or returns its error from the enclosing function.
#define TRY(declaration, ...) OCTAVO_TRY_AS(OCTAVO_CONCAT(octavo_try_, __LINE__), declaration, __VA_ARGS__)

#define TRY_VOID(...)                                           \
  do {                                                          \
    if (auto octavo_result = (__VA_ARGS__); !octavo_result)     \
      return std::unexpected(std::move(octavo_result.error())); \
  } while (false)
