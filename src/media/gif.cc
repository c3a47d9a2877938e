// Decodes the first picture of a GIF file (version 89a), as Pillow does.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "media/formats.h"

namespace octavo::media {
namespace {

constexpr unsigned kPaletteFlag = 0x80, kPaletteSizeBits = 0x07, kInterlacedFlag = 0x40;

class GifBytes {
 public:
  explicit GifBytes(std::string_view file) : rest_(file) {}

  // Returns "" if fewer bytes are left.
  std::string_view take(std::size_t bytes) {
    if (rest_.size() < bytes) {
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  std::optional<unsigned> byte() {
    const std::string_view one = take(1);
    if (one.empty()) return std::nullopt;
    return static_cast<unsigned char>(one[0]);
  }
  // Returns the joined data of the blocks up to the empty one, or nullopt if the file ends early.
  std::optional<std::string> blocks() {
    std::string data;
    for (;;) {
      const auto size = byte();
      if (!size) return std::nullopt;
      if (*size == 0) return data;
      const std::string_view block = take(*size);
      if (block.empty()) return std::nullopt;
      data += block;
    }
  }

 private:
  std::string_view rest_;
};

unsigned u16(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]) |
         static_cast<unsigned>(static_cast<unsigned char>(bytes[at + 1])) << 8;
}

// Returns the colours after a header with these flags: "" if it has none, nullopt if the file ends early.
std::optional<std::string_view> palette_of(GifBytes& file, unsigned flags) {
  if ((flags & kPaletteFlag) == 0) return std::string_view();
  const std::string_view colours = file.take(std::size_t{3} << ((flags & kPaletteSizeBits) + 1));
  if (colours.empty()) return std::nullopt;
  return colours;
}

// Decompresses LZW codes to at most `most` palette indices.
class Lzw {
 public:
  Lzw(std::string_view data, unsigned first_bits) : data_(data), first_bits_(first_bits) { clear(); }

  std::vector<std::uint8_t> decode(std::size_t most) {
    const unsigned end = clear_code() + 1;
    std::optional<unsigned> last;
    while (out_.size() < most) {
      const std::optional<unsigned> code = next();
      if (!code || *code == end) break;
      if (*code == clear_code()) {
        clear();
        last.reset();
        continue;
      }
      if (*code > size_ || (*code == size_ && !last)) break;
      // A code that is not in the table yet means the last text and its first byte.
      const unsigned known = *code < size_ ? *code : *last;
      if (last && size_ < kCodesMax) add(*last, first_of(known));
      write(*code);
      last = code;
    }
    if (out_.size() > most) out_.resize(most);
    return std::move(out_);
  }

 private:
  static constexpr unsigned kCodesMax = 4096, kBitsMax = 12;
  struct Entry {
    std::uint16_t before = 0;  // code of the text without its last byte
    std::uint16_t length = 0;
    std::uint8_t byte = 0, first = 0;
  };

  unsigned clear_code() const { return 1U << first_bits_; }
  void clear() {
    for (unsigned i = 0; i < clear_code(); ++i)
      table_[i] = {.length = 1, .byte = static_cast<std::uint8_t>(i), .first = static_cast<std::uint8_t>(i)};
    size_ = clear_code() + 2;
    bits_ = first_bits_ + 1;
  }
  std::optional<unsigned> next() {
    for (; held_ < bits_; held_ += 8) {
      if (at_ == data_.size()) return std::nullopt;
      buffer_ |= static_cast<unsigned>(static_cast<unsigned char>(data_[at_++])) << held_;
    }
    const unsigned code = buffer_ & ((1U << bits_) - 1);
    buffer_ >>= bits_;
    held_ -= bits_;
    return code;
  }
  std::uint8_t first_of(unsigned code) const { return table_[code].first; }
  void add(unsigned before, std::uint8_t byte) {
    table_[size_] = {.before = static_cast<std::uint16_t>(before),
                     .length = static_cast<std::uint16_t>(table_[before].length + 1),
                     .byte = byte,
                     .first = table_[before].first};
    ++size_;
    if (size_ == 1U << bits_ && bits_ < kBitsMax) ++bits_;
  }
  void write(unsigned code) {
    std::size_t left = table_[code].length;
    out_.resize(out_.size() + left);
    for (std::uint8_t* end = out_.data() + out_.size(); left > 0; --left, code = table_[code].before)
      *--end = table_[code].byte;
  }

  std::string_view data_;
  unsigned first_bits_;
  std::size_t at_ = 0;
  unsigned buffer_ = 0, held_ = 0;  // bits that were read, and their number
  unsigned bits_ = 0;               // bits of the next code
  unsigned size_ = 0;               // number of codes in the table
  std::array<Entry, kCodesMax> table_{};
  std::vector<std::uint8_t> out_;
};

// Returns the row of the picture that an interlaced file stores as the i-th.
std::size_t row_of(std::size_t i, std::size_t rows) {
  constexpr std::array<std::pair<std::size_t, std::size_t>, 4> kPasses = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  for (const auto& [first, step] : kPasses) {
    const std::size_t count = rows > first ? (rows - first + step - 1) / step : 0;
    if (i < count) return first + i * step;
    i -= count;
  }
  return 0;
}

void set_colour(std::uint8_t* pixel, std::string_view palette, unsigned index) {
  for (std::size_t c = 0; c < 3; ++c)
    pixel[c] = index * 3 + c < palette.size() ? static_cast<std::uint8_t>(palette[index * 3 + c]) : 0;
}

// Reads the picture after its separator.
Result<> draw(GifBytes& file, std::string_view palette, Image& image) {
  const auto damaged = [] { return invalid("", "the GIF image is damaged or ends early"); };
  const std::string_view header = file.take(9);
  if (header.empty()) return damaged();
  const unsigned flags = static_cast<unsigned char>(header[8]);
  const std::size_t left = u16(header, 0), top = u16(header, 2), width = u16(header, 4),
                    height = u16(header, 6);
  const auto own = palette_of(file, flags);
  const auto bits = file.byte();
  const auto data = file.blocks();
  if (!own || !bits || *bits < 1 || *bits > 8 || !data ||
      left + width > static_cast<std::size_t>(image.width) ||
      top + height > static_cast<std::size_t>(image.height))
    return damaged();
  if (!own->empty()) palette = *own;
  const std::vector<std::uint8_t> indices = Lzw(*data, *bits).decode(width * height);
  if (indices.size() < width * height) return damaged();
  for (std::size_t y = 0; y < height; ++y) {
    const std::size_t row = top + ((flags & kInterlacedFlag) != 0 ? row_of(y, height) : y);
    std::uint8_t* out = image.pixels.data() + (row * static_cast<std::size_t>(image.width) + left) * 3;
    for (std::size_t x = 0; x < width; ++x, out += 3) set_colour(out, palette, indices[y * width + x]);
  }
  return {};
}

}  // namespace

Result<Image> decode_gif(std::span<const std::byte> bytes, std::int64_t pixels_max) {
  constexpr std::size_t kSignature = 6;
  constexpr unsigned kExtension = 0x21, kPicture = 0x2C;
  GifBytes file({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  file.take(kSignature);
  const std::string_view header = file.take(7);
  const auto damaged = [] { return invalid("", "the GIF image is damaged or ends early"); };
  if (header.empty()) return damaged();
  Image image{static_cast<int>(u16(header, 0)), static_cast<int>(u16(header, 2)), {}};
  TRY_VOID(check_size(image.width, image.height, pixels_max));
  const auto palette = palette_of(file, static_cast<unsigned char>(header[4]));
  if (!palette) return damaged();
  auto kind = file.byte();
  for (; kind == kExtension; kind = file.byte())
    if (!file.byte() || !file.blocks()) return damaged();
  if (kind != kPicture) return damaged();
  image.pixels.resize(static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3);
  const unsigned background = static_cast<unsigned char>(header[5]);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) set_colour(&image.pixels[i], *palette, background);
  TRY_VOID(draw(file, *palette, image));
  return image;
}

}  // namespace octavo::media
