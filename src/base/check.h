// CHECK(condition) and CHECK(condition, "text {}", value) detect bugs in Octavo. If the condition is false,
// CHECK prints file, line, condition and values, and aborts. It is active in all builds, so do not use it
// in inner loops.
#pragma once

#include <fmt/format.h>

#include <string>

namespace octavo {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail);

namespace detail {
inline std::string check_text() { return {}; }
template <class... Args>
std::string check_text(fmt::format_string<Args...> text, Args&&... args) {
  return fmt::format(text, std::forward<Args>(args)...);
}
}  // namespace detail

}  // namespace octavo

#define CHECK(condition, ...)                                                                            \
  do {                                                                                                   \
    if (!(condition)) [[unlikely]]                                                                       \
      ::octavo::check_failed(__FILE__, __LINE__, #condition, ::octavo::detail::check_text(__VA_ARGS__)); \
  } while (false)
