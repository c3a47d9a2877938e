#include "record/record_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

Record record_of(int number, std::size_t tokens = 3) {
  Request request;
  request.prompt.assign(tokens, 7);
  return {.id = std::to_string(number), .request = request};
}

std::vector<Record> read_all(const fs::path& folder) {
  std::vector<Record> records;
  const auto files = record_files(folder.string());
  for (const fs::path& path : files.value_or(std::vector<fs::path>{})) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) records.push_back(parse_record(line).value());
  }
  return records;
}

std::int64_t bytes_in(const fs::path& folder) {
  std::int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    bytes += static_cast<std::int64_t>(entry.file_size());
  return bytes;
}

TEST(RecordLog, WritesALineForEachRecord) {
  RecordCounters counters;
  const ScratchDirectory folder;
  for (int run = 0; run < 2; ++run) {  // the second run adds a second file
    const auto log = RecordLog::open({.dir = folder / "new"}, counters).value();
    for (int i = 0; i < 50; ++i) log->add(record_of(run * 50 + i));
    ASSERT_TRUE(eventually([&] { return counters.written == 50 * (run + 1); }));
  }
  const std::vector<Record> records = read_all(folder / "new");
  ASSERT_EQ(records.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(records[static_cast<std::size_t>(i)].id, std::to_string(i));
}

TEST(RecordLog, TheEndWritesWhatWaits) {
  const ScratchDirectory folder;
  {
    const auto log = RecordLog::open({.dir = folder.path()}).value();
    for (int i = 0; i < 200; ++i) log->add(record_of(i));
  }
  EXPECT_EQ(read_all(folder.path()).size(), 200U);
}

TEST(RecordLog, RestartsDeleteTheOldestToo) {
  const ScratchDirectory folder;
  for (int run = 0; run < 12; ++run) {
    const auto log = RecordLog::open({.dir = folder.path(), .bytes_max = RecordOptions::kBytesMin}).value();
    // 4 kB per record, less than the size of a file
    for (int i = 0; i < 25; ++i) log->add(record_of(i, 2000));
  }
  EXPECT_LE(bytes_in(folder.path()), RecordOptions::kBytesMin);
  EXPECT_GT(read_all(folder.path()).size(), 150U);
}

TEST(RecordLog, DeletesTheOldestBeyondItsBytes) {
  RecordCounters counters;
  const ScratchDirectory folder;
  constexpr int kRecords = 400;
  {
    const auto log =
        RecordLog::open({.dir = folder.path(), .bytes_max = RecordOptions::kBytesMin}, counters).value();
    for (int i = 0; i < kRecords; ++i) log->add(record_of(i, 2000));  // 4 kB per record
    ASSERT_TRUE(eventually([&] { return counters.written == kRecords; }));
  }
  EXPECT_LE(bytes_in(folder.path()), RecordOptions::kBytesMin);
  const std::vector<Record> records = read_all(folder.path());
  EXPECT_GT(records.size(), 150U);
  for (std::size_t i = 0; i < records.size(); ++i)
    EXPECT_EQ(records[i].id, std::to_string(kRecords - records.size() + i));
}

TEST(RecordLog, ALargeRecordIsDroppedAndCounted) {
  RecordCounters counters;
  const ScratchDirectory folder;
  const auto log =
      RecordLog::open({.dir = folder.path(), .bytes_max = RecordOptions::kBytesMin}, counters).value();
  log->add(record_of(0, 100'000));
  log->add(record_of(1));
  ASSERT_TRUE(eventually([&] { return counters.written == 1; }));
  EXPECT_EQ(counters.dropped[static_cast<std::size_t>(RecordDrop::size)], 1);
}

// A limit on the size of files has the same effect as a full disk.
TEST(RecordLog, AFullDiskDropsRecordsAndLeavesWholeLines) {
  RecordCounters counters;
  const ScratchDirectory folder;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const auto log = RecordLog::open({.dir = folder.path()}, counters).value();
  log->add(record_of(0));
  ASSERT_TRUE(eventually([&] { return counters.written == 1; }));
  rlimit small = before;
  small.rlim_cur = static_cast<rlim_t>(bytes_in(folder.path()) + 100);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  log->add(record_of(1, 1000));
  EXPECT_TRUE(eventually([&] { return counters.dropped[static_cast<std::size_t>(RecordDrop::disk)] == 1; }));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  log->add(record_of(2));
  ASSERT_TRUE(eventually([&] { return counters.written == 2; }));
  std::signal(SIGXFSZ, handler);
  const std::vector<Record> records = read_all(folder.path());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].id, "2");
}

TEST(RecordLog, AFolderThatCannotBeMadeIsAnError) {
  const ScratchDirectory folder;
  folder.write("file", "");
  const auto log = RecordLog::open({.dir = folder / "file/below"});
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().field, "record");
  EXPECT_EQ(record_files(folder.path().string()).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace octavo
