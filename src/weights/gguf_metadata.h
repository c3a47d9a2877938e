// The metadata of a GGUF file: keys with typed values. src/model/gguf makes a model's configuration from it.
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

// The values of the enum are the type numbers in the file.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

std::string_view name(GgufType type);

// Reads little-endian values one after another. Every read returns nullopt after the end of the bytes.
class GgufCursor {
 public:
  explicit GgufCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::optional<std::uint32_t> u32();
  std::optional<std::uint64_t> u64();
  std::optional<std::string_view> text();  // a 64-bit length, then the bytes
  std::optional<std::span<const std::byte>> take(std::uint64_t count);
  // Skips a value. Returns false if the value is invalid or incomplete.
  bool skip(GgufType type, int depth = 0);

  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

// A value, which points into the file's memory.
struct GgufValue {
  GgufType type = GgufType::u8;            // the type of the items if the value is a list
  std::optional<std::uint64_t> size = {};  // length of a list; nullopt if the value is not a list
  std::span<const std::byte> bytes = {};   // the bytes of the value, or of a list's items
};

// The values of a file by key. Getters return nullopt if the key is missing. Errors name the file, the key
// and the expected type.
class GgufMetadata {
 public:
  // Reads `count` pairs of key and value. Errors: corrupt if a pair is damaged; the message names the key.
  static Result<GgufMetadata> parse(GgufCursor& cursor, std::uint64_t count, std::string_view what);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool is_list(std::string_view key) const { return has(key) && find(key)->size.has_value(); }
  Result<std::optional<bool>> boolean(std::string_view key) const;
  // Returns a number of any type. A list counts as one number if all its items are equal.
  Result<std::optional<double>> number(std::string_view key) const;
  // Returns an integer, which must be in [0, most].
  Result<std::optional<std::int64_t>> count(std::string_view key, std::int64_t most) const;
  Result<std::optional<std::string_view>> text(std::string_view key) const;
  // numbers() and texts() return an empty list if the key is missing. numbers() reads booleans as 0 and 1.
  Result<std::vector<double>> numbers(std::string_view key) const;
  Result<std::vector<std::string_view>> texts(std::string_view key) const;
  std::vector<std::string_view> keys(std::string_view prefix) const;

  // The file's name, which begins every error.
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
