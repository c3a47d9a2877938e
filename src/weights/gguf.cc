#include "weights/gguf.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>

#include "weights/gguf_blocks.h"

namespace octavo {
namespace {

constexpr std::uint32_t kGgufMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::string_view kMxfp4 = "MXFP4", kNvfp4 = "NVFP4";

struct Format {
  std::uint32_t number;  // number of the format in the file
  std::string_view name;
  std::int64_t elements;
  std::uint64_t bytes;
  Encoding encoding = Encoding::plain;
  std::optional<DType> dtype = {};
};
constexpr std::array kFormats = {
    Format{0, "F32", 1, 4, Encoding::plain, DType::f32},
    Format{1, "F16", 1, 2, Encoding::plain, DType::f16},
    Format{2, "Q4_0", 32, 18, Encoding::q4_0},
    Format{3, "Q4_1", 32, 20, Encoding::q4_1},
    Format{6, "Q5_0", 32, 22, Encoding::q5_0},
    Format{7, "Q5_1", 32, 24, Encoding::q5_1},
    Format{8, "Q8_0", 32, 34, Encoding::q8_0},
    Format{9, "Q8_1", 32, 40},
    Format{10, "Q2_K", 256, 84, Encoding::q2_k},
    Format{11, "Q3_K", 256, 110, Encoding::q3_k},
    Format{12, "Q4_K", 256, 144, Encoding::q4_k},
    Format{13, "Q5_K", 256, 176, Encoding::q5_k},
    Format{14, "Q6_K", 256, 210, Encoding::q6_k},
    Format{15, "Q8_K", 256, 292},
    Format{16, "IQ2_XXS", 256, 66, Encoding::iq2_xxs},
    Format{17, "IQ2_XS", 256, 74, Encoding::iq2_xs},
    Format{18, "IQ3_XXS", 256, 98, Encoding::iq3_xxs},
    Format{19, "IQ1_S", 256, 50, Encoding::iq1_s},
    Format{20, "IQ4_NL", 32, 18, Encoding::iq4_nl},
    Format{21, "IQ3_S", 256, 110, Encoding::iq3_s},
    Format{22, "IQ2_S", 256, 82, Encoding::iq2_s},
    Format{23, "IQ4_XS", 256, 136, Encoding::iq4_xs},
    Format{24, "I8", 1, 1, Encoding::plain, DType::i8},
    Format{25, "I16", 1, 2},
    Format{26, "I32", 1, 4, Encoding::plain, DType::i32},
    Format{27, "I64", 1, 8, Encoding::plain, DType::i64},
    Format{28, "F64", 1, 8},
    Format{29, "IQ1_M", 256, 56, Encoding::iq1_m},
    Format{30, "BF16", 1, 2, Encoding::plain, DType::bf16},
    Format{34, "TQ1_0", 256, 54, Encoding::tq1_0},
    Format{35, "TQ2_0", 256, 66, Encoding::tq2_0},
    Format{39, kMxfp4, 32, 17},
    Format{40, kNvfp4, 64, 36},
    Format{41, "Q1_0", 128, 18, Encoding::q1_0},
};

struct Entry {
  StoredTensor tensor;
  std::uint64_t offset;
  std::uint64_t bytes;
};

// The file lists the fastest-varying dimension first.
Result<Entry> read_entry(GgufCursor& cursor, std::string_view what, std::uint64_t number) {
  const auto name = cursor.text();
  const auto rank = name ? cursor.u32() : std::nullopt;
  if (!rank)
    return failure(ErrorCode::corrupt, "{}: the file ends within the entry of tensor {}", what, number + 1);
  if (name->empty() || name->size() > kGgufTensorNameBytesMax)
    return failure(ErrorCode::corrupt, "{}: the name of a tensor has {} bytes, but must have 1 to {}", what,
                   name->size(), kGgufTensorNameBytesMax);
  if (*rank < 1 || *rank > kGgufRankMax)
    return failure(ErrorCode::corrupt, "{}: tensor {} has {} dimensions, but must have 1 to {}", what, *name,
                   *rank, kGgufRankMax);
  Entry entry{.tensor = {.name = std::string(*name)}, .offset = 0, .bytes = 0};
  std::int64_t elements = 1;
  for (std::uint32_t i = 0; i < *rank; ++i) {
    const auto size = cursor.u64();
    if (!size)
      return failure(ErrorCode::corrupt, "{}: the file ends within the entry of tensor {}", what, *name);
    if (*size == 0 || *size > INT64_MAX ||
        __builtin_mul_overflow(elements, static_cast<std::int64_t>(*size), &elements))
      return failure(ErrorCode::corrupt,
                     "{}: tensor {}: dimension {} is {}, but must be at least 1, and the product of all "
                     "dimensions at most 2^63",
                     what, *name, i + 1, *size);
    entry.tensor.shape.insert(entry.tensor.shape.begin(), static_cast<std::int64_t>(*size));
  }
  const auto format_number = cursor.u32();
  const auto offset = cursor.u64();
  if (!offset)
    return failure(ErrorCode::corrupt, "{}: the file ends within the entry of tensor {}", what, *name);
  const auto* format = std::ranges::find(kFormats, *format_number, &Format::number);
  if (format == kFormats.end())
    return failure(ErrorCode::corrupt, "{}: tensor {} has the unknown format {}", what, *name,
                   *format_number);
  if (entry.tensor.shape.back() % format->elements != 0)
    return failure(ErrorCode::corrupt,
                   "{}: tensor {}: rows have {} elements, but must be a multiple of {} ({})", what, *name,
                   entry.tensor.shape.back(), format->elements, format->name);
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(elements / format->elements), format->bytes,
                             &entry.bytes))
    return failure(ErrorCode::corrupt, "{}: tensor {}: its shape [{}] overflows", what, *name,
                   fmt::join(entry.tensor.shape, ", "));
  entry.tensor.format = format->name;
  entry.tensor.encoding = format->encoding;
  entry.tensor.dtype = format->dtype;
  entry.offset = *offset;
  return entry;
}

// Assigns each tensor its bytes. Tensors must cover the data in table order.
Result<> place(std::vector<Entry>& entries, std::span<const std::byte> data, std::uint64_t alignment,
               std::string_view what) {
  std::uint64_t next = 0;
  for (Entry& e : entries) {
    if (e.offset != next)
      return failure(ErrorCode::corrupt, "{}: tensor {} begins at byte {} of the data, but must begin at {}",
                     what, e.tensor.name, e.offset, next);
    if (next > data.size() || e.bytes > data.size() - next)
      return failure(
          ErrorCode::corrupt,
          "{}: tensor {} has {} bytes from byte {} of the data on, but the file has only {} bytes of data",
          what, e.tensor.name, e.bytes, next, data.size());
    e.tensor.bytes = data.subspan(static_cast<std::size_t>(next), static_cast<std::size_t>(e.bytes));
    if (e.tensor.format == kMxfp4) e.tensor = matrix_of_blocks(e.tensor, kMxfp4Blocks);
    if (e.tensor.format == kNvfp4) e.tensor = matrix_of_blocks(e.tensor, kNvfp4Blocks);
    next += (e.bytes + alignment - 1) / alignment * alignment;
  }
  if (data.size() > next)
    return failure(ErrorCode::corrupt, "{}: the last {} bytes belong to no tensor", what, data.size() - next);
  return {};
}

// Example: name-00001-of-00003.gguf.
std::string split_name(std::string_view stem, std::int64_t number, std::int64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, number, count);
}

Result<> check_split(const GgufMetadata& metadata, std::int64_t number, std::int64_t count) {
  TRY(const auto no, metadata.count("split.no", kGgufFilesMax));
  TRY(const auto of, metadata.count("split.count", kGgufFilesMax));
  if (no.value_or(-1) == number && of.value_or(-1) == count) return {};
  return failure(ErrorCode::corrupt, "{}: the metadata says file {} of {}, but the file's name says {} of {}",
                 metadata.what(), no.value_or(-1) + 1, of.value_or(-1), number + 1, count);
}

}  // namespace

Result<GgufContents> parse_gguf(std::span<const std::byte> file, std::string_view what) {
  GgufCursor cursor(file);
  const auto magic = cursor.u32();
  if (magic != kGgufMagic) return failure(ErrorCode::corrupt, "{}: the file is not a GGUF file", what);
  const auto version = cursor.u32();
  const auto tensors = cursor.u64();
  const auto keys = cursor.u64();
  if (!keys) return failure(ErrorCode::corrupt, "{}: the file has only {} bytes", what, file.size());
  if (*version != 2 && *version != 3)
    return failure(
        ErrorCode::corrupt,
        "{}: the file has GGUF version {}, but only versions 2 and 3 (little-endian) are supported", what,
        *version);
  if (*tensors > kGgufTensorsMax)
    return failure(ErrorCode::corrupt, "{}: the file has {} tensors, but the limit is {}", what, *tensors,
                   kGgufTensorsMax);
  GgufContents contents;
  TRY(contents.metadata, GgufMetadata::parse(cursor, *keys, what));
  TRY(const auto requested, contents.metadata.count("general.alignment", 1 << 20));
  const std::uint64_t alignment = requested ? static_cast<std::uint64_t>(*requested) : kDefaultAlignment;
  if (alignment == 0 || alignment % 8 != 0)
    return failure(ErrorCode::corrupt, "{}: general.alignment is {}, but must be a multiple of 8", what,
                   alignment);

  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < *tensors; ++i) {
    TRY(Entry entry, read_entry(cursor, what, i));
    entries.push_back(std::move(entry));
  }
  const std::uint64_t padding = (alignment - cursor.position() % alignment) % alignment;
  const auto padded = cursor.take(padding);
  if (!padded && !entries.empty())
    return failure(ErrorCode::corrupt, "{}: the file has {} bytes, but its header alone needs {}", what,
                   file.size(), cursor.position() + padding);
  TRY_VOID(place(entries, *cursor.take(cursor.left()), alignment, what));
  for (Entry& e : entries) contents.tensors.push_back(std::move(e.tensor));
  return contents;
}

Result<Gguf> Gguf::open(const std::string& path) {
  Gguf gguf;
  const auto add = [&](const std::string& name) -> Result<GgufMetadata> {
    TRY(MappedFile file, MappedFile::open(name));
    TRY(GgufContents contents, parse_gguf(file.bytes(), name));
    gguf.files.push_back(std::move(file));
    std::ranges::move(contents.tensors, std::back_inserter(gguf.tensors));
    return std::move(contents.metadata);
  };
  TRY(gguf.metadata, add(path));
  TRY(const auto split, gguf.metadata.count("split.count", kGgufFilesMax));
  if (const std::int64_t count = split.value_or(1); count > 1) {
    TRY(const auto number, gguf.metadata.count("split.no", kGgufFilesMax));
    const std::string tail = split_name("", number.value_or(0) + 1, count);
    if (!path.ends_with(tail))
      return invalid("model", "{} is file {} of {}, but its name does not end in {}", path,
                     number.value_or(0) + 1, count, tail);
    const std::string stem = path.substr(0, path.size() - tail.size());
    if (number.value_or(0) != 0)
      return invalid("model", "{} is file {} of {}: give the first file, {}", path, *number + 1, count,
                     split_name(stem, 1, count));
    for (std::int64_t i = 1; i < count; ++i) {
      TRY(const GgufMetadata metadata, add(split_name(stem, i + 1, count)));
      TRY_VOID(check_split(metadata, i, count));
    }
    TRY(const auto in_all, gguf.metadata.count("split.tensors.count", kGgufTensorsMax));
    if (in_all && *in_all != std::ssize(gguf.tensors))
      return failure(ErrorCode::corrupt, "{}: split.tensors.count is {}, but the {} files have {} tensors",
                     path, *in_all, count, gguf.tensors.size());
  }
  // Some norms lack the suffix in files of Falcon-H1 and PLaMo.
  for (StoredTensor& tensor : gguf.tensors)
    if (tensor.name.starts_with("blk.") && tensor.name.ends_with("_norm")) tensor.name += ".weight";
  std::ranges::sort(gguf.tensors, {}, &StoredTensor::name);
  const auto twice = std::ranges::adjacent_find(gguf.tensors, {}, &StoredTensor::name);
  if (twice != gguf.tensors.end())
    return failure(ErrorCode::corrupt, "{}: tensor {} occurs twice", path, twice->name);
  TRY_VOID(join_nvfp4_scales(gguf.tensors));
  return gguf;
}

const StoredTensor* Gguf::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors, name, {}, &StoredTensor::name);
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

bool is_gguf(const std::string& path) {
  std::error_code ec;
  return std::filesystem::is_regular_file(path, ec) ||
         (path.ends_with(".gguf") && !std::filesystem::is_directory(path, ec));
}

}  // namespace octavo
