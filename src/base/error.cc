#include "base/error.h"

namespace octavo {

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid argument";
    case ErrorCode::not_found:
      return "not found";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::io:
      return "I/O error";
    case ErrorCode::resource_exhausted:
      return "resource exhausted";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::internal:
      return "internal error";
  }
  return "unknown";
}

}  // namespace octavo
