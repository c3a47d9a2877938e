#include "hub/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace octavo::hub {

namespace fs = std::filesystem;

std::string read_word(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

Result<> write_whole(const fs::path& file, std::string_view bytes) {
  TRY_VOID(make_parent(file));
  const fs::path made = fmt::format("{}.{}.new", file.string(), ::getpid());
  std::ofstream out(made, std::ios::binary);
  if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
    return file_failure("cannot write", made);
  if (::rename(made.c_str(), file.c_str()) != 0) return file_failure("cannot write", file);
  return {};
}

Result<> make_parent(const fs::path& file) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error)
    return failure(ErrorCode::io, "cannot create {}: {}", file.parent_path().string(), error.message());
  return {};
}

std::unexpected<Error> file_failure(std::string_view what, const fs::path& file) {
  return failure(ErrorCode::io, "{} {}: {}", what, file.string(), std::strerror(errno));
}

}  // namespace octavo::hub
