// Helpers for the C interfaces in bindings/. A C function reports an error as a struct {code, field[],
// message[]}, and must not throw exceptions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Copies the text and a terminating '\0'. Truncates the text if `out` is too small.
inline void copy_text(std::string_view text, std::span<char> out) {
  const std::size_t bytes = std::min(text.size(), out.size() - 1);
  std::memcpy(out.data(), text.data(), bytes);
  out[bytes] = '\0';
}

// code_of: converts an ErrorCode to a nonzero code of the C interface. out may be null.
template <auto code_of, class CError>
std::int32_t report_error(const Error& error, CError* out) {
  const auto code = code_of(error.code);
  if (!out) return code;
  out->code = code;
  copy_text(error.field, out->field);
  copy_text(error.message, out->message);
  return code;
}

// Calls `work`, which returns Result<>. Returns 0 for success, otherwise the code of the error.
template <auto code_of, class CError, class Work>
std::int32_t guarded_call(CError* out, Work&& work) noexcept {
  try {
    const Result<> done = work();
    return done ? 0 : report_error<code_of>(done.error(), out);
  } catch (const std::bad_alloc&) {
    return report_error<code_of>({ErrorCode::resource_exhausted, "out of memory", {}}, out);
  } catch (const std::exception& thrown) {
    return report_error<code_of>({ErrorCode::internal, thrown.what(), {}}, out);
  }
}

}  // namespace octavo
