#include "text/bridge.h"

namespace octavo::bridge {

Result<std::string> take(Status status, Bytes bytes, std::string_view field) {
  std::string text(reinterpret_cast<const char*>(bytes.data), bytes.size);
  octavo_bytes_free(bytes);
  if (status == Status::ok) return text;
  const ErrorCode code = status == Status::invalid ? ErrorCode::invalid_argument : ErrorCode::internal;
  return field_failure(field, code, "{}", text);
}

}  // namespace octavo::bridge
