#include "http/inflate.h"

#include <zlib.h>

#include <array>
#include <limits>

namespace octavo::http {
namespace {

constexpr std::size_t kPieceBytes = 64 << 10;
// windowBits of zlib: largest window, and detection of gzip or zlib.
constexpr int kGzipOrZlib = 15 + 32;

class Stream {
 public:
  Stream() : open_(inflateInit2(&z, kGzipOrZlib) == Z_OK) {}
  ~Stream() {
    if (open_) inflateEnd(&z);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  bool open() const { return open_; }

  z_stream z{};

 private:
  bool open_;
};

}  // namespace

Inflated inflate(std::string_view bytes, std::uint64_t bytes_max, std::string& out,
                 const std::function<bool(std::uint64_t size)>& grow) {
  Stream stream;
  if (!stream.open()) return Inflated::too_large;  // out of memory
  if (bytes.size() > std::numeric_limits<uInt>::max()) return Inflated::too_large;
  z_stream& z = stream.z;
  // zlib does not change the input (zlib.h).
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  std::array<char, kPieceBytes> piece{};
  for (;;) {
    z.next_out = reinterpret_cast<Bytef*>(piece.data());
    z.avail_out = kPieceBytes;
    const int state = ::inflate(&z, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END) return Inflated::malformed;
    const std::size_t made = kPieceBytes - z.avail_out;
    if (out.size() + made > bytes_max || !grow(out.size() + made)) return Inflated::too_large;
    out.append(piece.data(), made);
    if (state == Z_STREAM_END) return z.avail_in == 0 ? Inflated::whole : Inflated::malformed;
    if (made == 0 && z.avail_in == 0) return Inflated::malformed;  // the input is incomplete
  }
}

}  // namespace octavo::http
