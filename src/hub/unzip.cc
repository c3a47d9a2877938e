#include "hub/unzip.h"

#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

#include "base/sha256.h"
#include "hub/files.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = 1 << 16;

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};
using Stdio = std::unique_ptr<std::FILE, Closer>;

Result<Stdio> opened(const fs::path& path, const char* mode) {
  Stdio file(std::fopen(path.c_str(), mode));
  if (file == nullptr) return file_failure("cannot open", path);
  return file;
}

// Reads the local header of a member (APPNOTE.TXT 4.3.7). The member's data follows.
Result<> read_header(std::FILE* in, std::string_view member, const fs::path& archive) {
  constexpr std::size_t kMethod = 8, kNameLength = 26, kExtraLength = 28;
  constexpr unsigned kDeflated = 8;
  std::array<unsigned char, 30> header{};
  std::string name(member.size(), '\0');
  const auto number = [&](std::size_t at) { return header[at] + 256U * header[at + 1]; };
  const bool right = std::fread(header.data(), 1, header.size(), in) == header.size() &&
                     std::string_view(reinterpret_cast<const char*>(header.data()), 4) == "PK\3\4" &&
                     number(kMethod) == kDeflated && number(kNameLength) == member.size() &&
                     std::fread(name.data(), 1, name.size(), in) == name.size() && name == member &&
                     std::fseek(in, static_cast<long>(number(kExtraLength)), SEEK_CUR) == 0;
  if (right) return {};
  return failure(ErrorCode::corrupt, "{} does not begin with a deflated {}", archive.string(), member);
}

}  // namespace

Result<std::string> unzip_first(const fs::path& archive, std::string_view member, const fs::path& out,
                                std::uint64_t bytes_max) {
  TRY(const Stdio in, opened(archive, "rb"));
  TRY_VOID(read_header(in.get(), member, archive));
  TRY(const Stdio file, opened(out, "wb"));
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
    return failure(ErrorCode::resource_exhausted, "not enough memory for zlib");
  const std::unique_ptr<z_stream, Closer> end(&z);

  std::vector<unsigned char> packed(kPieceBytes);
  std::vector<unsigned char> plain(kPieceBytes);
  Sha256 sha256;
  std::uint64_t size = 0;
  for (int state = Z_OK; state != Z_STREAM_END;) {
    if (z.avail_in == 0) {
      z.next_in = packed.data();
      z.avail_in = static_cast<uInt>(std::fread(packed.data(), 1, packed.size(), in.get()));
    }
    z.next_out = plain.data();
    z.avail_out = static_cast<uInt>(plain.size());
    state = inflate(&z, Z_NO_FLUSH);
    const std::span made(plain.data(), plain.size() - z.avail_out);
    size += made.size();
    if ((state != Z_OK && state != Z_STREAM_END) || size > bytes_max)
      return failure(ErrorCode::corrupt, "{} in {} is damaged or larger than {} bytes", member,
                     archive.string(), bytes_max);
    if (std::fwrite(made.data(), 1, made.size(), file.get()) != made.size())
      return file_failure("cannot write", out);
    sha256.add(std::as_bytes(made));
  }
  if (std::fflush(file.get()) != 0 || ::fsync(::fileno(file.get())) != 0)
    return file_failure("cannot write", out);
  return sha256.hex();
}

}  // namespace octavo::hub
