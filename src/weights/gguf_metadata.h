// Metadata of a GGUF file: keys and typed values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

// The numbers are those of the file format.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

std::string_view name(GgufType type);

// Reads little-endian values one after another; returns nullopt after the end.
class GgufCursor {
 public:
  explicit GgufCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::optional<std::uint32_t> u32();
  std::optional<std::uint64_t> u64();
  std::optional<std::string_view> text();  // reads a 64-bit length, then the bytes
  std::optional<std::span<const std::byte>> take(std::uint64_t count);
  // Skips a value of the type. False: the value is invalid or incomplete.
  bool skip(GgufType type, int depth = 0);

  std::size_t place() const { return place_; }
  std::size_t left() const { return bytes_.size() - place_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t place_ = 0;
};

// A value. Its bytes are in the file's memory, which must live longer.
struct GgufValue {
  GgufType type = GgufType::u8;            // type of a list's items
  std::optional<std::uint64_t> size = {};  // length of a list
  std::span<const std::byte> bytes = {};   // the value; of a list, the items
};

// A file's values by key. A getter returns nullopt if the key is missing. Errors name the file, the key and
// the expected type.
class GgufMetadata {
 public:
  // Reads `count` pairs of key and value. Errors: corrupt, with the key.
  static Result<GgufMetadata> parse(GgufCursor& cursor, std::uint64_t count, std::string_view what);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool is_list(std::string_view key) const { return has(key) && find(key)->size.has_value(); }
  Result<std::optional<bool>> boolean(std::string_view key) const;
  // Returns a number of any type. If the value is a list, all items must be equal, and one item is returned.
  Result<std::optional<double>> number(std::string_view key) const;
  // A number in [0, most].
  Result<std::optional<std::int64_t>> count(std::string_view key, std::int64_t most) const;
  Result<std::optional<std::string_view>> text(std::string_view key) const;
  // Lists; empty if the key is missing. numbers() accepts booleans as 0 and 1.
  Result<std::vector<double>> numbers(std::string_view key) const;
  Result<std::vector<std::string_view>> texts(std::string_view key) const;
  // The keys with this prefix, ascending.
  std::vector<std::string_view> keys(std::string_view prefix) const;

  // The file's name, for errors.
  const std::string& what() const { return what_; }

 private:
  struct Entry {
    std::string_view key;
    GgufValue value;
  };
  const GgufValue* find(std::string_view key) const;
  std::unexpected<Error> must_be(std::string_view key, std::string_view kind) const;

  std::string what_;
  std::vector<Entry> entries_;  // ascending by key
};

inline constexpr std::uint64_t kGgufKeysMax = 100'000;
inline constexpr std::size_t kGgufKeyBytesMax = 65'535;

}  // namespace octavo
