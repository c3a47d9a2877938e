#include "base/msgpack_reader.h"

#include <msgpuck.h>

#include <limits>

namespace octavo {

// Checks each value separately. msgpuck's mp_check() of a whole text counts values in an int, which overflows
// if a malicious array claims a large length. mp_check_*() return the number of missing bytes of a value's
// header.

std::optional<std::uint32_t> MsgpackReader::array() {
  if (at_ == end_ || mp_typeof(*at_) != MP_ARRAY || mp_check_array(at_, end_) > 0) return std::nullopt;
  return mp_decode_array(&at_);
}

std::optional<std::uint32_t> MsgpackReader::map() {
  if (at_ == end_ || mp_typeof(*at_) != MP_MAP || mp_check_map(at_, end_) > 0) return std::nullopt;
  return mp_decode_map(&at_);
}

std::optional<std::uint64_t> MsgpackReader::bits() {
  if (at_ == end_) return std::nullopt;
  if (mp_typeof(*at_) == MP_UINT && mp_check_uint(at_, end_) <= 0) return mp_decode_uint(&at_);
  if (mp_typeof(*at_) == MP_INT && mp_check_int(at_, end_) <= 0)
    return static_cast<std::uint64_t>(mp_decode_int(&at_));
  return std::nullopt;
}

std::optional<std::int64_t> MsgpackReader::integer() {
  const bool may_be_large = at_ != end_ && mp_typeof(*at_) == MP_UINT;
  const auto value = bits();
  if (value && may_be_large && *value > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

std::optional<std::string_view> MsgpackReader::text() {
  if (at_ == end_ || mp_typeof(*at_) != MP_STR || mp_check_strl(at_, end_) > 0) return std::nullopt;
  const std::uint32_t size = mp_decode_strl(&at_);
  if (size > static_cast<std::uint64_t>(end_ - at_)) return std::nullopt;
  const std::string_view text(at_, size);
  at_ += size;
  return text;
}

std::optional<std::string_view> MsgpackReader::bytes() {
  if (end_ - at_ < 2) return std::nullopt;  // because mp_check_binl() reads two bytes
  if (mp_typeof(*at_) != MP_BIN || mp_check_binl(at_, end_) > 0) return std::nullopt;
  const std::uint32_t size = mp_decode_binl(&at_);
  if (size > static_cast<std::uint64_t>(end_ - at_)) return std::nullopt;
  const std::string_view bytes(at_, size);
  at_ += size;
  return bytes;
}

bool MsgpackReader::nil() {
  if (at_ == end_ || mp_typeof(*at_) != MP_NIL) return false;
  mp_decode_nil(&at_);
  return true;
}

bool MsgpackReader::skip() {
  for (std::uint64_t left = 1; left > 0; --left) {
    if (at_ == end_) return false;
    switch (mp_typeof(*at_)) {
      case MP_ARRAY: {
        const auto items = array();
        if (!items) return false;
        left += *items;
        break;
      }
      case MP_MAP: {
        const auto pairs = map();
        if (!pairs) return false;
        left += 2 * std::uint64_t{*pairs};
        break;
      }
      case MP_UINT:
      case MP_INT:
        if (!bits()) return false;
        break;
      case MP_STR:
        if (!text()) return false;
        break;
      case MP_BIN:
        if (!bytes()) return false;
        break;
      case MP_FLOAT:
        if (mp_check_float(at_, end_) > 0) return false;
        mp_decode_float(&at_);
        break;
      case MP_DOUBLE:
        if (mp_check_double(at_, end_) > 0) return false;
        mp_decode_double(&at_);
        break;
      case MP_NIL:
      case MP_BOOL:
        ++at_;
        break;
      case MP_EXT:
        return false;
    }
  }
  return true;
}

}  // namespace octavo
