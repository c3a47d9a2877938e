#include "weights/zip_archive.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace octavo {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56, kEntryBytes = 46,
                      kHeaderBytes = 30;
constexpr std::size_t kCommentMax = 0xFFFF;
constexpr std::uint32_t kHeader = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50, kLocator = 0x07064b50,
                        kEnd64 = 0x06064b50;
constexpr std::uint64_t kElsewhere = 0xFFFF'FFFF;  // the 64-bit value is in the extra field

template <class T>
T number(Bytes bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | T{std::to_integer<std::uint8_t>(bytes[at + i])} << (8 * i));
  return value;
}

// Returns `size` bytes from offset `at`, or nullopt if the file ends earlier.
std::optional<Bytes> take(Bytes file, std::uint64_t at, std::uint64_t size) {
  if (at > file.size() || size > file.size() - at) return std::nullopt;
  return file.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
}

std::string_view text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

struct Directory {
  std::uint64_t entries = 0, bytes = 0, offset = 0;
};

// Reads the end-of-central-directory record. Returns nullopt if the record is missing or contradicts the
// file.
std::optional<Directory> find_directory(Bytes file) {
  if (file.size() < kEndBytes) return std::nullopt;
  const std::size_t last = file.size() - kEndBytes;
  const std::size_t first = last - std::min(last, kCommentMax);
  for (std::size_t at = last + 1; at-- > first;) {
    if (number<std::uint32_t>(file, at) != kEnd) continue;
    Directory directory{.entries = number<std::uint16_t>(file, at + 10),
                        .bytes = number<std::uint32_t>(file, at + 12),
                        .offset = number<std::uint32_t>(file, at + 16)};
    if (at < kLocatorBytes || number<std::uint32_t>(file, at - kLocatorBytes) != kLocator) return directory;
    const auto end = take(file, number<std::uint64_t>(file, at - kLocatorBytes + 8), kEnd64Bytes);
    if (!end || number<std::uint32_t>(*end, 0) != kEnd64) return std::nullopt;
    return Directory{.entries = number<std::uint64_t>(*end, 32),
                     .bytes = number<std::uint64_t>(*end, 40),
                     .offset = number<std::uint64_t>(*end, 48)};
  }
  return std::nullopt;
}

// Reads 64-bit values from the extra field, in order. Returns false if some are missing.
bool read_wide_numbers(Bytes extra, std::span<std::uint64_t*> wanted) {
  constexpr std::uint16_t kWide = 1;
  while (extra.size() >= 4) {
    const auto id = number<std::uint16_t>(extra, 0);
    const auto body = take(extra, 4, number<std::uint16_t>(extra, 2));
    if (!body) return false;
    if (id == kWide) {
      if (body->size() < 8 * wanted.size()) return false;
      for (std::size_t i = 0; i < wanted.size(); ++i) *wanted[i] = number<std::uint64_t>(*body, 8 * i);
      return true;
    }
    extra = extra.subspan(4 + body->size());
  }
  return wanted.empty();
}

}  // namespace

bool is_zip(std::span<const std::byte> file) {
  return file.size() >= kEndBytes && number<std::uint32_t>(file, 0) == kHeader;
}

Result<std::vector<ZipEntry>> parse_zip(std::span<const std::byte> file, std::string_view what) {
  const auto damaged = [&](std::string_view problem) {
    return failure(ErrorCode::corrupt, "{}: the ZIP archive is incomplete: {}", what, problem);
  };
  const auto directory = find_directory(file);
  if (!directory) return damaged("the archive has no directory at its end");
  const auto records = take(file, directory->offset, directory->bytes);
  if (!records) return damaged("the archive's directory is outside of the file");
  if (directory->entries > kZipEntriesMax)
    return failure(ErrorCode::corrupt, "{}: the archive has {} entries, but the limit is {}", what,
                   directory->entries, kZipEntriesMax);

  std::vector<ZipEntry> entries;
  Bytes rest = *records;
  for (std::uint64_t i = 0; i < directory->entries; ++i) {
    if (rest.size() < kEntryBytes || number<std::uint32_t>(rest, 0) != kEntry)
      return damaged("the archive's directory ends early");
    const auto flags = number<std::uint16_t>(rest, 8), method = number<std::uint16_t>(rest, 10);
    std::uint64_t stored = number<std::uint32_t>(rest, 20), size = number<std::uint32_t>(rest, 24);
    std::uint64_t offset = number<std::uint32_t>(rest, 42);
    const std::size_t name_bytes = number<std::uint16_t>(rest, 28),
                      extra_bytes = number<std::uint16_t>(rest, 30),
                      comment_bytes = number<std::uint16_t>(rest, 32);
    const auto tail = take(rest, kEntryBytes, name_bytes + extra_bytes + comment_bytes);
    if (!tail) return damaged("the archive's directory ends early");
    const std::string_view name = text(tail->first(name_bytes));
    std::vector<std::uint64_t*> wide;
    for (std::uint64_t* n : {&size, &stored, &offset})
      if (*n == kElsewhere) wide.push_back(n);
    if (!read_wide_numbers(tail->subspan(name_bytes, extra_bytes), wide))
      return failure(ErrorCode::corrupt, "{}: entry {} has no sizes", what, name);
    if (method != 0 || stored != size || flags % 2 != 0)
      return failure(ErrorCode::corrupt,
                     "{}: entry {} is compressed or encrypted, but only stored entries are supported", what,
                     name);
    const auto header = take(file, offset, kHeaderBytes);
    if (!header || number<std::uint32_t>(*header, 0) != kHeader)
      return failure(ErrorCode::corrupt, "{}: entry {} is not at the position that the directory gives", what,
                     name);
    const std::uint64_t before =
        std::uint64_t{kHeaderBytes} + number<std::uint16_t>(*header, 26) + number<std::uint16_t>(*header, 28);
    const auto bytes = take(file, offset + before, size);
    if (!bytes)
      return failure(ErrorCode::corrupt, "{}: entry {} has {} bytes, which is more than the rest of the file",
                     what, name, size);
    entries.push_back({.name = name, .bytes = *bytes});
    rest = rest.subspan(kEntryBytes + tail->size());
  }
  return entries;
}

}  // namespace octavo
