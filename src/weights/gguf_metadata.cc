#include "weights/gguf_metadata.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

namespace octavo {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read in the byte order of memory");

constexpr int kListDepthMax = 4;

struct TypeFacts {
  std::string_view name;
  std::size_t bytes;  // 0: variable size
};
constexpr std::array kTypes = {TypeFacts{"u8", 1},   TypeFacts{"i8", 1},   TypeFacts{"u16", 2},
                               TypeFacts{"i16", 2},  TypeFacts{"u32", 4},  TypeFacts{"i32", 4},
                               TypeFacts{"f32", 4},  TypeFacts{"bool", 1}, TypeFacts{"text", 0},
                               TypeFacts{"list", 0}, TypeFacts{"u64", 8},  TypeFacts{"i64", 8},
                               TypeFacts{"f64", 8}};

bool known(GgufType type) { return static_cast<std::size_t>(type) < kTypes.size(); }
const TypeFacts& facts(GgufType type) { return kTypes[static_cast<std::size_t>(type)]; }

template <class T>
T get(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Reads a number. `type` must have a fixed size.
double number_at(const std::byte* bytes, GgufType type) {
  switch (type) {
    case GgufType::u8:
      return get<std::uint8_t>(bytes);
    case GgufType::i8:
      return get<std::int8_t>(bytes);
    case GgufType::u16:
      return get<std::uint16_t>(bytes);
    case GgufType::i16:
      return get<std::int16_t>(bytes);
    case GgufType::u32:
      return get<std::uint32_t>(bytes);
    case GgufType::i32:
      return get<std::int32_t>(bytes);
    case GgufType::f32:
      return get<float>(bytes);
    case GgufType::boolean:
      return get<std::uint8_t>(bytes) != 0 ? 1 : 0;
    case GgufType::u64:
      return static_cast<double>(get<std::uint64_t>(bytes));
    case GgufType::i64:
      return static_cast<double>(get<std::int64_t>(bytes));
    case GgufType::f64:
      return get<double>(bytes);
    case GgufType::text:
    case GgufType::list:
      break;
  }
  return 0;
}

}  // namespace

std::string_view name(GgufType type) { return known(type) ? facts(type).name : "?"; }

std::optional<std::span<const std::byte>> GgufCursor::take(std::uint64_t count) {
  if (count > left()) return std::nullopt;
  const auto part = bytes_.subspan(position_, static_cast<std::size_t>(count));
  position_ += part.size();
  return part;
}

std::optional<std::uint32_t> GgufCursor::u32() {
  const auto bytes = take(sizeof(std::uint32_t));
  return bytes ? std::optional(get<std::uint32_t>(bytes->data())) : std::nullopt;
}

std::optional<std::uint64_t> GgufCursor::u64() {
  const auto bytes = take(sizeof(std::uint64_t));
  return bytes ? std::optional(get<std::uint64_t>(bytes->data())) : std::nullopt;
}

std::optional<std::string_view> GgufCursor::text() {
  const auto size = u64();
  const auto bytes = size ? take(*size) : std::nullopt;
  if (!bytes) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

bool GgufCursor::skip(GgufType type, int depth) {
  if (!known(type) || depth > kListDepthMax) return false;
  if (type == GgufType::text) return text().has_value();
  if (type != GgufType::list) return take(facts(type).bytes).has_value();
  const auto items = u32();
  const auto size = items ? u64() : std::nullopt;
  if (!size) return false;
  const auto item = static_cast<GgufType>(*items);
  if (!known(item)) return false;
  if (const std::size_t bytes = facts(item).bytes; bytes > 0)
    return *size <= left() / bytes && take(*size * bytes).has_value();
  // An item has at least eight bytes, so a damaged size ends the loop at the end of the file.
  for (std::uint64_t i = 0; i < *size; ++i)
    if (!skip(item, depth + 1)) return false;
  return true;
}

Result<GgufMetadata> GgufMetadata::parse(GgufCursor& cursor, std::uint64_t count, std::string_view what) {
  GgufMetadata metadata;
  metadata.what_ = what;
  if (count > kGgufKeysMax)
    return failure(ErrorCode::corrupt, "{}: the file has {} keys, but the limit is {}", what, count,
                   kGgufKeysMax);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto key = cursor.text();
    if (!key) return failure(ErrorCode::corrupt, "{}: the file ends within key {} of {}", what, i + 1, count);
    if (key->empty() || key->size() > kGgufKeyBytesMax)
      return failure(ErrorCode::corrupt, "{}: a key has {} bytes, but must have 1 to {}", what, key->size(),
                     kGgufKeyBytesMax);
    const auto number = cursor.u32();
    const auto type = static_cast<GgufType>(number.value_or(0));
    if (number && !known(type))
      return failure(ErrorCode::corrupt, "{}: {} has a value of the unknown type {}", what, *key, *number);
    GgufCursor head = cursor;
    const std::size_t begin = cursor.position();
    if (!number || !cursor.skip(type))
      return failure(ErrorCode::corrupt, "{}: the value of {} is not a {}, or is longer than the file", what,
                     *key, name(type));
    GgufValue value{.type = type};
    if (type == GgufType::list) {
      value.type = static_cast<GgufType>(*head.u32());
      value.size = *head.u64();
    }
    value.bytes = *head.take(cursor.position() - begin - (type == GgufType::list ? 12 : 0));
    metadata.entries_.push_back({*key, value});
  }
  std::ranges::sort(metadata.entries_, {}, &Entry::key);
  const auto twice = std::ranges::adjacent_find(metadata.entries_, {}, &Entry::key);
  if (twice != metadata.entries_.end())
    return failure(ErrorCode::corrupt, "{}: the key {} occurs twice", what, twice->key);
  return metadata;
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = std::ranges::lower_bound(entries_, key, {}, &Entry::key);
  return found != entries_.end() && found->key == key ? &found->value : nullptr;
}

std::unexpected<Error> GgufMetadata::must_be(std::string_view key, std::string_view kind) const {
  return field_failure(key, ErrorCode::corrupt, "{}: {} must be {}", what_, key, kind);
}

Result<std::optional<bool>> GgufMetadata::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::boolean || value->size) return must_be(key, "true or false");
  return value->bytes[0] != std::byte{0};
}

Result<std::optional<double>> GgufMetadata::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<double> items;
  if (value->size) {
    TRY(items, numbers(key));
  } else if (facts(value->type).bytes > 0 && value->type != GgufType::boolean) {
    items.push_back(number_at(value->bytes.data(), value->type));
  }
  if (items.empty()) return must_be(key, "a number");
  if (std::ranges::adjacent_find(items, std::ranges::not_equal_to()) != items.end())
    return field_failure(key, ErrorCode::unsupported, "{}: {} must be the same for all layers", what_, key);
  return items[0];
}

Result<std::optional<std::int64_t>> GgufMetadata::count(std::string_view key, std::int64_t most) const {
  TRY(const std::optional<double> value, number(key));
  if (!value) return std::nullopt;
  if (std::trunc(*value) != *value || *value < 0 || *value > static_cast<double>(most))
    return field_failure(key, ErrorCode::corrupt, "{}: {} is {}, but must be a whole number in [0, {}]",
                         what_, key, *value, most);
  return static_cast<std::int64_t>(*value);
}

Result<std::optional<std::string_view>> GgufMetadata::text(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::text || value->size) return must_be(key, "a text");
  return GgufCursor(value->bytes).text();
}

Result<std::vector<double>> GgufMetadata::numbers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  if (!value->size || facts(value->type).bytes == 0) return must_be(key, "a list of numbers");
  std::vector<double> items(static_cast<std::size_t>(*value->size));
  for (std::size_t i = 0; i < items.size(); ++i)
    items[i] = number_at(value->bytes.data() + i * facts(value->type).bytes, value->type);
  return items;
}

Result<std::vector<std::string_view>> GgufMetadata::texts(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  if (!value->size || value->type != GgufType::text) return must_be(key, "a list of texts");
  GgufCursor cursor(value->bytes);
  std::vector<std::string_view> items(static_cast<std::size_t>(*value->size));
  for (std::string_view& item : items) item = *cursor.text();
  return items;
}

std::vector<std::string_view> GgufMetadata::keys(std::string_view prefix) const {
  std::vector<std::string_view> found;
  for (auto entry = std::ranges::lower_bound(entries_, prefix, {}, &Entry::key);
       entry != entries_.end() && entry->key.starts_with(prefix); ++entry)
    found.push_back(entry->key);
  return found;
}

}  // namespace octavo
