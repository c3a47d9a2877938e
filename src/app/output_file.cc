#include "app/output_file.h"

#include <fstream>

namespace octavo {

Result<> write_output(std::string_view field, const std::string& path, std::string_view text) {
  if (path.empty()) return {};
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) return field_failure(field, ErrorCode::io, "cannot write the file {}", path);
  return {};
}

}  // namespace octavo
