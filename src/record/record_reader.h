// Reads records line by line, because a folder of records can be larger than the memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "record/record.h"

namespace octavo {

class RecordReader {
 public:
  // `path` is a folder of records or one file. Returns the errors of record_files().
  static Result<RecordReader> open(const std::string& path);

  struct Line {
    std::string location;  // file and line number, for error messages
    Result<Record> record;
  };
  // Returns nullopt after the last line.
  std::optional<Line> next();

 private:
  explicit RecordReader(std::vector<std::filesystem::path> files) : files_(std::move(files)) {}

  std::vector<std::filesystem::path> files_;
  std::ifstream stream_;
  std::size_t file_ = 0;  // number of files opened so far
  std::int64_t number_ = 0;
};

}  // namespace octavo
