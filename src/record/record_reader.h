// Reads records line by line, because they may exceed the memory.
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
  // path: a folder of records or one of its files. Errors: as of record_files().
  static Result<RecordReader> open(const std::string& path);

  struct Line {
    std::string place;  // file and line number, for messages
    Result<Record> record;
  };
  // Returns nullopt after the last line.
  std::optional<Line> next();

 private:
  explicit RecordReader(std::vector<std::filesystem::path> files) : files_(std::move(files)) {}

  std::vector<std::filesystem::path> files_;
  std::ifstream stream_;
  std::size_t file_ = 0;  // number of opened files
  std::int64_t number_ = 0;
};

}  // namespace octavo
