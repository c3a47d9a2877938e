#include "weights/safetensors.h"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <cstring>
#include <numeric>
#include <set>

#include "base/json_events.h"
#include "weights/json.h"

namespace octavo {
namespace {

namespace json = boost::json;

struct Format {
  std::string_view name;
  std::uint64_t bytes;
  std::optional<DType> dtype;
};
constexpr std::array kFormats = {
    Format{"BOOL", 1, std::nullopt}, Format{"U8", 1, DType::u8},         Format{"I8", 1, DType::i8},
    Format{"I16", 2, std::nullopt},  Format{"U16", 2, std::nullopt},     Format{"F16", 2, DType::f16},
    Format{"BF16", 2, DType::bf16},  Format{"I32", 4, DType::i32},       Format{"U32", 4, std::nullopt},
    Format{"F32", 4, DType::f32},    Format{"F64", 8, std::nullopt},     Format{"I64", 8, DType::i64},
    Format{"U64", 8, std::nullopt},  Format{"F8_E4M3", 1, std::nullopt}, Format{"F8_E5M2", 1, std::nullopt},
    Format{"F8_E8M0", 1, std::nullopt}};

struct Entry {
  std::string name;
  const Format* format = nullptr;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::vector<std::int64_t>> offsets;

  std::uint64_t begin() const { return static_cast<std::uint64_t>((*offsets)[0]); }
  std::uint64_t end() const { return static_cast<std::uint64_t>((*offsets)[1]); }
};

// Parses the header: { "__metadata__": {string: string}, name: {dtype, shape, data_offsets}, ... }.
// `problem` is the rule that the header breaks, or "" if the text is not JSON.
class HeaderReader : public JsonEvents {
 public:
  std::vector<Entry> entries;
  std::string problem;

  bool on_object_begin(error_code& ec) {
    switch (expected_) {
      case Expected::start:
        expected_ = Expected::top;
        return true;
      case Expected::metadata_value:
        expected_ = Expected::metadata;
        return true;
      case Expected::entry_value:
        expected_ = Expected::entry;
        return true;
      default:
        return unexpected("an object", ec);
    }
  }

  bool on_object_end(std::size_t, error_code& ec) {
    if (expected_ == Expected::metadata) {
      expected_ = Expected::top;
    } else if (expected_ == Expected::entry) {
      const Entry& e = entries.back();
      if (e.format == nullptr) return refuse(ec, "tensor {} has no dtype", e.name);
      if (!e.shape) return refuse(ec, "tensor {} has no shape", e.name);
      if (!e.offsets) return refuse(ec, "tensor {} has no data_offsets", e.name);
      if (e.offsets->size() != 2) return refuse(ec, "tensor {}: data_offsets must be two numbers", e.name);
      expected_ = Expected::top;
    }
    return true;
  }

  bool on_key_part(string_view part, std::size_t, error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }

  bool on_key(string_view part, std::size_t, error_code& ec) {
    text_.append(part.data(), part.size());
    const std::string key = std::exchange(text_, {});
    if (expected_ == Expected::top) return open_value(key, ec);
    if (expected_ == Expected::metadata) {
      if (!metadata_keys_.insert(key).second) return refuse(ec, "the key \"{}\" occurs twice", key);
      return true;
    }
    const Entry& e = entries.back();
    const bool again = (key == "dtype" && e.format != nullptr) || (key == "shape" && e.shape) ||
                       (key == "data_offsets" && e.offsets);
    if (again) return refuse(ec, "tensor {}: the key \"{}\" occurs twice", e.name, key);
    if (key == "dtype") {
      expected_ = Expected::dtype;
    } else if (key == "shape") {
      expected_ = Expected::shape;
    } else if (key == "data_offsets") {
      expected_ = Expected::offsets;
    } else {
      return refuse(ec, "tensor {}: unknown key \"{}\"", e.name, key);
    }
    return true;
  }

  bool on_array_begin(error_code& ec) {
    if (expected_ == Expected::shape && !entries.back().shape) {
      numbers_ = &entries.back().shape.emplace();
    } else if (expected_ == Expected::offsets && !entries.back().offsets) {
      numbers_ = &entries.back().offsets.emplace();
    } else {
      return unexpected("an array", ec);
    }
    return true;
  }

  bool on_array_end(std::size_t, error_code&) {
    numbers_ = nullptr;
    expected_ = Expected::entry;
    return true;
  }

  bool on_int64(std::int64_t value, string_view, error_code& ec) {
    if (numbers_ == nullptr) return unexpected("a number", ec);
    if (value < 0) return refuse(ec, "tensor {}: negative number {}", entries.back().name, value);
    if (numbers_->size() >= kSafetensorsRankMax) {
      return refuse(ec, "tensor {}: more than {} numbers in a list", entries.back().name,
                    kSafetensorsRankMax);
    }
    numbers_->push_back(value);
    return true;
  }
  bool on_uint64(std::uint64_t value, string_view, error_code& ec) {
    if (numbers_ == nullptr) return unexpected("a number", ec);
    return refuse(ec, "tensor {}: the number {} exceeds 2^63 - 1", entries.back().name, value);
  }
  bool on_double(double, string_view, error_code& ec) { return unexpected("a fraction", ec); }
  bool on_bool(bool, error_code& ec) { return unexpected("true or false", ec); }
  bool on_null(error_code& ec) { return unexpected("null", ec); }

  bool on_string_part(string_view part, std::size_t, error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }

  bool on_string(string_view part, std::size_t, error_code& ec) {
    text_.append(part.data(), part.size());
    const std::string value = std::exchange(text_, {});
    if (expected_ == Expected::metadata) return true;
    if (expected_ != Expected::dtype) return unexpected("a string", ec);
    const auto* format = std::ranges::find(kFormats, value, &Format::name);
    if (format == kFormats.end()) {
      return refuse(ec, "tensor {}: unknown dtype \"{}\"", entries.back().name, value);
    }
    entries.back().format = format;
    expected_ = Expected::entry;
    return true;
  }

 private:
  // Part of the header that the parser is in. It decides what may come next.
  enum class Expected : std::uint8_t {
    start,
    top,
    metadata_value,
    metadata,
    entry_value,
    entry,
    dtype,
    shape,
    offsets
  };

  bool open_value(const std::string& key, error_code& ec) {
    if (key == "__metadata__") {
      if (seen_metadata_) return refuse(ec, "the key \"__metadata__\" occurs twice");
      seen_metadata_ = true;
      expected_ = Expected::metadata_value;
      return true;
    }
    if (entries.size() == kSafetensorsTensorsMax) {
      return refuse(ec, "more than {} tensors", kSafetensorsTensorsMax);
    }
    entries.push_back({.name = key, .format = nullptr, .shape = {}, .offsets = {}});
    expected_ = Expected::entry_value;
    return true;
  }

  bool unexpected(std::string_view what, error_code& ec) {
    if (entries.empty()) return refuse(ec, "{} where the header must not have one", what);
    return refuse(ec, "tensor {}: {} where the header must not have one", entries.back().name, what);
  }

  template <class... Args>
  bool refuse(error_code& ec, fmt::format_string<Args...> text, Args&&... args) {
    problem = fmt::format(text, std::forward<Args>(args)...);
    ec = json::make_error_code(json::error::syntax);
    return false;
  }

  Expected expected_ = Expected::start;
  bool seen_metadata_ = false;
  std::set<std::string> metadata_keys_;
  std::string text_;  // key or string so far; the parser delivers long ones in parts
  std::vector<std::int64_t>* numbers_ = nullptr;
};

Result<std::vector<Entry>> read_header(std::string_view header, std::string_view what) {
  // JSON allows any whitespace at the end, the format only spaces.
  while (header.ends_with(' ')) header.remove_suffix(1);
  if (!header.starts_with('{')) return failure(ErrorCode::corrupt, "{}: the header must begin with {{", what);
  if (!header.ends_with('}')) {
    return failure(ErrorCode::corrupt, "{}: the header must end with }} and may be padded with spaces only",
                   what);
  }
  json::parse_options options;
  options.max_depth = 3;
  json::basic_parser<HeaderReader> parser(options);
  boost::system::error_code ec;
  const std::size_t read = parser.write_some(false, header.data(), header.size(), ec);
  HeaderReader& reader = parser.handler();
  if (!reader.problem.empty()) return failure(ErrorCode::corrupt, "{}: {}", what, reader.problem);
  if (ec || read != header.size()) {
    return failure(ErrorCode::corrupt, "{}: the header is not valid JSON near byte {}: {}", what, read,
                   ec ? ec.message() : "text after its end");
  }
  return std::move(reader.entries);
}

// Checks that dtype, shape and offsets agree, and that the tensor is inside the data.
Result<> check_entry(const Entry& e, std::uint64_t data_bytes, std::string_view what) {
  if (e.begin() > e.end()) {
    return failure(ErrorCode::corrupt, "{}: tensor {}: data_offsets [{}, {}) must be in ascending order",
                   what, e.name, e.begin(), e.end());
  }
  if (e.end() > data_bytes) {
    return failure(ErrorCode::corrupt,
                   "{}: tensor {} ends at byte {} of the data, but the file has only {} bytes of data", what,
                   e.name, e.end(), data_bytes);
  }
  std::uint64_t bytes = e.format->bytes;
  for (const std::int64_t extent : *e.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
      return failure(ErrorCode::corrupt, "{}: tensor {}: its shape [{}] overflows", what, e.name,
                     fmt::join(*e.shape, ", "));
    }
  }
  if (bytes != e.end() - e.begin()) {
    return failure(ErrorCode::corrupt, "{}: tensor {}: {} [{}] needs {} bytes, but its data_offsets have {}",
                   what, e.name, e.format->name, fmt::join(*e.shape, ", "), bytes, e.end() - e.begin());
  }
  return {};
}

// Checks that the tensors cover [0, data_bytes) without gaps and overlaps.
Result<> check_cover(std::span<const Entry> entries, std::uint64_t data_bytes, std::string_view what) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {},
                    [&](std::size_t i) { return std::pair(entries[i].begin(), entries[i].end()); });
  std::uint64_t covered = 0;
  for (const std::size_t i : order) {
    const Entry& e = entries[i];
    if (e.begin() < covered) {
      return failure(ErrorCode::corrupt,
                     "{}: tensor {} begins at byte {}, but the tensors before it end at byte {}", what,
                     e.name, e.begin(), covered);
    }
    if (e.begin() > covered) {
      return failure(ErrorCode::corrupt, "{}: {} bytes before tensor {} belong to no tensor", what,
                     e.begin() - covered, e.name);
    }
    covered = e.end();
  }
  if (covered != data_bytes) {
    return failure(ErrorCode::corrupt, "{}: the last {} bytes belong to no tensor", what,
                   data_bytes - covered);
  }
  return {};
}

}  // namespace

Result<std::vector<StoredTensor>> parse_safetensors(std::span<const std::byte> file, std::string_view what) {
  std::uint64_t header_bytes = 0;
  if (file.size() < sizeof header_bytes) {
    return failure(ErrorCode::corrupt,
                   "{}: the file has only {} bytes, but the length of the header alone needs 8", what,
                   file.size());
  }
  for (std::size_t i = 0; i < sizeof header_bytes; ++i) {
    header_bytes |= std::uint64_t{std::to_integer<std::uint8_t>(file[i])} << (8 * i);
  }
  if (header_bytes > kSafetensorsHeaderBytesMax) {
    return failure(ErrorCode::corrupt, "{}: the header has {} bytes, but the limit is {}", what, header_bytes,
                   kSafetensorsHeaderBytesMax);
  }
  if (header_bytes > file.size() - sizeof header_bytes) {
    return failure(ErrorCode::corrupt, "{}: the header has {} bytes, but the file has only {}", what,
                   header_bytes, file.size());
  }
  const auto* text = reinterpret_cast<const char*>(file.data() + sizeof header_bytes);
  TRY(std::vector<Entry> entries, read_header({text, static_cast<std::size_t>(header_bytes)}, what));

  const auto data = file.subspan(sizeof header_bytes + static_cast<std::size_t>(header_bytes));
  for (const Entry& e : entries) TRY_VOID(check_entry(e, data.size(), what));
  TRY_VOID(check_cover(entries, data.size(), what));
  std::ranges::sort(entries, {}, &Entry::name);
  const auto twice = std::ranges::adjacent_find(entries, {}, &Entry::name);
  if (twice != entries.end())
    return failure(ErrorCode::corrupt, "{}: tensor {} occurs twice", what, twice->name);

  std::vector<StoredTensor> tensors;
  tensors.reserve(entries.size());
  for (Entry& e : entries) {
    tensors.push_back({.name = std::move(e.name),
                       .format = e.format->name,
                       .dtype = e.format->dtype,
                       .shape = std::move(*e.shape),
                       .bytes = data.subspan(e.begin(), e.end() - e.begin())});
  }
  return tensors;
}

}  // namespace octavo
