// For tests: a ZIP archive with one deflated member.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::hub {

// Only has what unzip_first() reads: a local header and data.
inline std::string test_wheel(std::string_view member, std::string_view content) {
  std::string data(compressBound(content.size()), '\0');
  z_stream z{};
  deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  z.avail_in = static_cast<uInt>(content.size());
  z.next_out = reinterpret_cast<Bytef*>(data.data());
  z.avail_out = static_cast<uInt>(data.size());
  deflate(&z, Z_FINISH);
  data.resize(z.total_out);
  deflateEnd(&z);

  std::string archive = "PK\3\4";
  const auto add = [&](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) archive += static_cast<char>(value >> (8 * i));
  };
  const std::string_view extra = "extra";
  add(20, 2);  // version
  add(0, 2);   // flags
  add(8, 2);   // deflated
  add(0, 4);   // date
  add(0, 4);   // CRC-32
  add(data.size(), 4);
  add(content.size(), 4);
  add(member.size(), 2);
  add(extra.size(), 2);
  archive.append(member).append(extra).append(data);
  return archive + "PK\1\2 and the other members";
}

}  // namespace octavo::hub
