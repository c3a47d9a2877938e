#include "record/record_reader.h"

#include <fmt/format.h>

#include <utility>

#include "record/record_log.h"

namespace octavo {

Result<RecordReader> RecordReader::open(const std::string& path) {
  TRY(std::vector<std::filesystem::path> files, record_files(path));
  return RecordReader(std::move(files));
}

std::optional<RecordReader::Line> RecordReader::next() {
  std::string text;
  while (!std::getline(stream_, text)) {
    if (file_ == files_.size()) return std::nullopt;
    stream_ = std::ifstream(files_[file_++]);
    number_ = 0;
  }
  ++number_;
  return Line{fmt::format("{}:{}", files_[file_ - 1].filename().string(), number_), parse_record(text)};
}

}  // namespace octavo
