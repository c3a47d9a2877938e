#include "transfer/tiers/block_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "base/testing/scratch_directory.h"
#include "transfer/tiers/direct_io.h"

namespace octavo {
namespace {

int leading(const BlockStore& store, const std::vector<Hash128>& keys) {
  const std::vector<bool> stored = store.contains(keys);
  return static_cast<int>(std::ranges::find(stored, false) - stored.begin());
}

namespace fs = std::filesystem;

const BlockFormat kFormat{.fingerprint = "model", .dtype = "bf16", .block_size = 16, .bytes = 5000};
const auto kStride = static_cast<std::int64_t>(kFormat.stride());

Hash128 key(int i) {
  return {static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15, static_cast<std::uint64_t>(i)};
}

std::vector<std::byte> contents_of(int i, const BlockFormat& format = kFormat) {
  return std::vector<std::byte>(static_cast<std::size_t>(format.bytes), static_cast<std::byte>(i));
}

std::vector<std::byte> block(int i) {
  std::vector<std::byte> packed(kFormat.stride(), static_cast<std::byte>(i));
  seal(kFormat, key(i), packed);
  return packed;
}

struct Files {
  ScratchDirectory folder;
  std::unique_ptr<BlockFiles> files;
  BlockFormat format = kFormat;
  bool direct_io = false;

  explicit Files(std::int64_t blocks = 100, bool direct = false) : direct_io(direct) { open(blocks); }
  void open(std::int64_t blocks = 100) {
    files.reset();
    const auto bytes = static_cast<std::int64_t>(
        packed_bytes(format, direct_io ? direct_io_alignment(folder.path()).value() : 1));
    files = BlockFiles::open(folder.path(), format, blocks * bytes, EvictionPolicy::lru, direct_io).value();
  }
  Result<> put(int i) {
    return files->write(
        key(i), [&](std::span<std::byte> to) { std::ranges::copy(contents_of(i, format), to.begin()); });
  }
  Result<> get(int i) {
    bool same = false;
    const Result<> read = files->read(key(i), [&](std::span<const std::byte> contents) {
      same = std::ranges::equal(contents, contents_of(i, format));
    });
    EXPECT_EQ(same, read.has_value());
    return read;
  }
  fs::path path(int i) const {
    const std::string name = fmt::format("{:016x}{:016x}.kv", key(i).high, key(i).low);
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
      if (entry.path().filename() == name) return entry.path();
    return {};
  }
  std::set<ino_t> on_disk() const {
    std::set<ino_t> numbers;
    struct stat status;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
      if (entry.path().extension() == ".kv" && stat(entry.path().c_str(), &status) == 0)
        numbers.insert(status.st_ino);
    return numbers;
  }
  int count_on_disk() const { return static_cast<int>(on_disk().size()); }
};

// Parameter: whether files use direct I/O.
class BothWays : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !direct_io_alignment(testing::TempDir()))
      GTEST_SKIP() << "a file system without direct I/O";
  }
};
INSTANTIATE_TEST_SUITE_P(BlockFiles, BothWays, testing::Bool(),
                         [](const auto& way) { return way.param ? "Direct" : "Cached"; });

TEST_P(BothWays, WhatIsWrittenIsReadAlsoByTheNextProcess) {
  Files f(100, GetParam());
  EXPECT_EQ(f.get(1).error().code, ErrorCode::not_found);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(f.put(i));
  f.open();
  EXPECT_EQ(f.files->count(), 20);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(f.get(i)) << i;
  const std::vector<Hash128> keys{key(3), key(4), key(50), key(5)};
  EXPECT_EQ(leading(*f.files, keys), 2);
}

TEST_P(BothWays, TheLeastRecentlyUsedMakeRoom) {
  Files f(4, GetParam());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(f.put(i));
  const std::vector<Hash128> used{key(0), key(1)};
  f.files->touch(used);
  ASSERT_TRUE(f.put(4));
  ASSERT_TRUE(f.put(5));
  EXPECT_FALSE(f.files->contains(key(2)));
  EXPECT_FALSE(f.files->contains(key(3)));
  ASSERT_TRUE(f.put(6));
  EXPECT_TRUE(f.files->contains(key(0)))
      << "of blocks last used at the same time, the end of the prefix is evicted first";
  EXPECT_FALSE(f.files->contains(key(1)));
  EXPECT_EQ(f.files->evicted(), 3);
  EXPECT_EQ(f.count_on_disk(), 4);
}

TEST_P(BothWays, FilesOfEvictedBlocksAreThoseOfTheNext) {
  Files f(4, GetParam());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(f.put(i));
  const std::set<ino_t> files = f.on_disk();
  for (int i = 4; i < 30; ++i) {
    if (i == 10) fs::resize_file(f.path(6), 100);
    if (i == 20) fs::remove(f.path(16));
    ASSERT_TRUE(f.put(i));
    if (i < 20) {
      EXPECT_EQ(f.on_disk(), files);
    }
  }
  EXPECT_EQ(f.count_on_disk(), 4);
  f.open(4);
  for (int i = 26; i < 30; ++i) EXPECT_TRUE(f.get(i)) << i;
}

TEST_P(BothWays, WhoReadsABlockThatIsEvictedSeesItOrNone) {
  Files f(4, GetParam());
  // With direct I/O there are fewer iterations, because each write goes to the disk.
  const int turns = GetParam() ? 300 : 3000;
  std::atomic<int> last = 0, seen = 0;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    for (int turn = 0; !done; ++turn) {
      const Result<> read = f.get(last - turn % 5);
      seen += read.has_value();
      EXPECT_TRUE(read || read.error().code == ErrorCode::not_found) << read.error().message;
    }
  });
  while (last < turns || seen == 0) {
    EXPECT_TRUE(f.put(last));
    ++last;
  }
  done = true;
  reader.join();
}

TEST(BlockFiles, TheOrderOfUseOutlivesTheProcess) {
  Files f;
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(f.put(i));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // file times are coarse
  const std::vector<Hash128> used{key(0), key(3)};
  f.files->touch(used);
  f.open(2);
  EXPECT_EQ(f.files->count(), 2);
  EXPECT_TRUE(f.files->contains(key(0)) && f.files->contains(key(3)));
  EXPECT_EQ(f.count_on_disk(), 2);
}

TEST_P(BothWays, SpoiltFilesAreErrorsAndGo) {
  Files f(100, GetParam());
  const auto spoil = [&](int i, auto&& change) {
    EXPECT_TRUE(f.put(i));
    std::fstream file(f.path(i), std::ios::in | std::ios::out | std::ios::binary);
    change(file);
    file.close();
    f.open();  // as after a crash
    const ErrorCode code = f.get(i).error().code;
    EXPECT_FALSE(f.files->contains(key(i)));
    EXPECT_EQ(f.path(i), fs::path());
    return code;
  };
  const auto flip = [](std::streamoff at) {
    return [at](std::fstream& file) { file.seekp(at).put('\x55'); };
  };
  EXPECT_EQ(spoil(1, flip(2000)), ErrorCode::corrupt);
  EXPECT_EQ(spoil(2, flip(0)), ErrorCode::corrupt);
  EXPECT_EQ(spoil(3, flip(20)), ErrorCode::invalid_argument);  // changes the digest of the format in the
                                                               // header
  EXPECT_EQ(spoil(4, [&](std::fstream&) { fs::resize_file(f.path(4), 3000); }), ErrorCode::corrupt);
  EXPECT_EQ(spoil(5, [&](std::fstream&) { fs::resize_file(f.path(5), 0); }), ErrorCode::corrupt);
  // After a system crash, a file can have its final name although part of its data is missing.
  const auto half_of_another = [](std::ptrdiff_t begin, std::ptrdiff_t end) {
    return [=](std::fstream& file) {
      const auto other = block(7);
      file.seekp(begin).write(reinterpret_cast<const char*>(other.data()) + begin, end - begin);
    };
  };
  EXPECT_EQ(spoil(8, half_of_another(0, 4096)), ErrorCode::invalid_argument);
  EXPECT_EQ(spoil(9, half_of_another(4096, kStride)), ErrorCode::corrupt);
  // This file contains a valid block with another key.
  EXPECT_EQ(spoil(6,
                  [&](std::fstream& file) {
                    const auto other = block(7);
                    file.write(reinterpret_cast<const char*>(other.data()), std::ssize(other));
                  }),
            ErrorCode::invalid_argument);
}

TEST(BlockFiles, WhatWasBeingWrittenIsRemoved) {
  Files f;
  ASSERT_TRUE(f.put(1));
  const fs::path unfinished = f.path(1).string() + ".part";
  std::ofstream(unfinished) << "half";
  f.open();
  EXPECT_FALSE(fs::exists(unfinished));
  EXPECT_EQ(f.files->count(), 1);
}

TEST(BlockFiles, AFileThatSomebodyRemovesIsAMiss) {
  Files f;
  ASSERT_TRUE(f.put(1));
  fs::remove(f.path(1));
  EXPECT_EQ(f.get(1).error().code, ErrorCode::not_found);
  EXPECT_FALSE(f.files->contains(key(1)));
}

TEST_P(BothWays, AFullDiskIsAnErrorThatLeavesNothing) {
  Files f(100, GetParam());
  ASSERT_TRUE(f.put(1));
  // With this limit on the size of a file, one write() writes fewer bytes than requested and the next one
  // fails, as on a full disk.
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  for (const rlim_t most : {3000, 4096}) {
    const rlimit tiny{most, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tiny);
    const Result<> written = f.put(2);
    setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(written) << most;
    EXPECT_EQ(written.error().code, ErrorCode::io);
    EXPECT_FALSE(f.files->contains(key(2)));
    EXPECT_EQ(f.count_on_disk(), 1);
  }
  EXPECT_TRUE(f.get(1));
}

// Returns the number of the file's pages that are in the page cache.
std::ptrdiff_t pages_in_memory(const fs::path& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const std::size_t bytes = fs::file_size(path);
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  std::vector<unsigned char> pages(bytes / static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + 1);
  EXPECT_EQ(mincore(mapped, bytes, pages.data()), 0);
  munmap(mapped, bytes);
  close(file);
  return std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; });
}

TEST_P(BothWays, OnlyOneOfThemFillsThePageCache) {
  Files f(100, GetParam());
  ASSERT_TRUE(f.put(1));
  EXPECT_EQ(pages_in_memory(f.path(1)) == 0, GetParam());
  ASSERT_TRUE(f.get(1));
  EXPECT_EQ(pages_in_memory(f.path(1)) == 0, GetParam());
}

TEST_P(BothWays, WhatOneHasWrittenTheOtherReadsAtAnySize) {
  for (const int bytes : {1, 448, 449, 4032, 4033, 5000, 8128, 70'001}) {
    Files f;
    f.format.bytes = bytes;
    f.direct_io = GetParam();
    f.open(4);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(f.put(i)) << bytes;
    EXPECT_GE(fs::file_size(f.path(0)), f.format.stride());
    f.direct_io = !GetParam();
    f.open(8);
    EXPECT_EQ(f.files->count(), 4);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(f.get(i)) << bytes;
    for (int i = 4; i < 8; ++i) ASSERT_TRUE(f.put(i)) << bytes;
    f.direct_io = GetParam();
    f.open(8);
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(f.get(i)) << bytes;
    // Overwrites the files that were written in the other mode (with or without direct I/O).
    for (int i = 8; i < 16; ++i) ASSERT_TRUE(f.put(i)) << bytes;
    for (int i = 8; i < 16; ++i) EXPECT_TRUE(f.get(i)) << bytes;
    EXPECT_EQ(f.count_on_disk(), 8);
  }
}

// With direct I/O, the padding of files counts as used space.
TEST_P(BothWays, FilesTakeNoMoreThanTheyMay) {
  Files f(3, GetParam());
  std::uintmax_t bytes = 0;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(f.put(i));
  for (int i = 2; i < 5; ++i) bytes += fs::file_size(f.path(i));
  EXPECT_EQ(bytes, 3 * packed_bytes(kFormat, GetParam() ? direct_io_alignment(f.folder.path()).value() : 1));
  f.files.reset();
  const auto same = BlockFiles::open(f.folder.path(), kFormat, static_cast<std::int64_t>(bytes),
                                     EvictionPolicy::lru, GetParam());
  EXPECT_EQ(same.value()->most(), 3U);
}

TEST(BlockFiles, AFileSystemWithoutDirectIoIsRefused) {
  if (!fs::is_directory("/dev/shm")) GTEST_SKIP() << "no tmpfs";
  std::string folder = "/dev/shm/octavo.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto open = [&](bool direct) {
    return BlockFiles::open(folder, kFormat, kStride, EvictionPolicy::lru, direct);
  };
  const auto refused = open(true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_EQ(refused.error().field, "use_odirect");
  EXPECT_NE(refused.error().message.find(folder), std::string::npos) << refused.error().message;
  EXPECT_TRUE(open(false));
  fs::remove_all(folder);
}

TEST(BlockFiles, RoomForABlockInAFolder) {
  Files f;
  EXPECT_EQ(BlockFiles::open(f.folder.path(), kFormat, kStride - 1).error().code,
            ErrorCode::invalid_argument);
  f.folder.write("file", "");
  EXPECT_EQ(BlockFiles::open(f.folder / "file", kFormat, kStride).error().code, ErrorCode::io);
}

struct Shared {
  Files one;
  std::unique_ptr<BlockFiles> other;

  explicit Shared(std::int64_t blocks = 100) : one(blocks) {
    other = BlockFiles::open(one.folder.path(), kFormat, blocks * kStride).value();
  }
  static Result<> put(BlockFiles& files, int i) {
    return files.write(key(i),
                       [&](std::span<std::byte> to) { std::ranges::copy(contents_of(i), to.begin()); });
  }
  static bool finds(BlockFiles& files, int i) {
    const Hash128 name = key(i);
    files.look_up(std::span(&name, 1));
    return files.contains(name);
  }
  static void use(BlockFiles& files, int i) {
    const Hash128 name = key(i);
    files.touch(std::span(&name, 1));
  }
};

TEST(BlockFiles, OneEngineReadsWhatTheOtherHasWritten) {
  Shared f;
  ASSERT_TRUE(f.one.put(1));
  EXPECT_FALSE(f.other->contains(key(1))) << "it has not looked";
  EXPECT_TRUE(Shared::finds(*f.other, 1));
  EXPECT_FALSE(Shared::finds(*f.other, 2));
  bool same = false;
  EXPECT_TRUE(f.other->read(key(1), [&](std::span<const std::byte> contents) {
    same = std::ranges::equal(contents, contents_of(1));
  }));
  EXPECT_TRUE(same);
  const fs::path file = f.one.path(1);
  const auto written = fs::last_write_time(file);
  ASSERT_TRUE(f.other->write(key(1), [](std::span<std::byte>) { FAIL() << "it is stored already"; }));
  EXPECT_EQ(fs::last_write_time(file), written);
  f.other->remove(std::vector<Hash128>{key(1)});
  EXPECT_FALSE(Shared::finds(*f.one.files, 1));
  EXPECT_EQ(f.one.get(1).error().code, ErrorCode::not_found);
}

TEST(BlockFiles, TheMaximumIsForAllEnginesAndTheOrderOfUseIsTheirs) {
  Shared f(8);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(f.one.put(i));
  for (int i = 0; i < 8; ++i) Shared::use(*f.one.files, i);
  Shared::use(*f.other, 0);
  for (int i = 8; i < 12; ++i) {
    ASSERT_TRUE(Shared::put(*f.other, i));
    Shared::use(*f.other, i);
    EXPECT_EQ(f.one.count_on_disk(), 8);
  }
  EXPECT_TRUE(Shared::finds(*f.one.files, 0)) << "the other engine has used it";
  for (int i = 1; i < 5; ++i) EXPECT_FALSE(Shared::finds(*f.one.files, i)) << i;
  for (int i = 5; i < 12; ++i) EXPECT_TRUE(Shared::finds(*f.one.files, i)) << i;
  // When the first engine needs space, it reads the folder and finds the new files.
  for (int i = 12; i < 20; ++i) {
    ASSERT_TRUE(f.one.put(i));
    EXPECT_EQ(f.one.count_on_disk(), 8);
  }
  for (int i = 12; i < 20; ++i) EXPECT_TRUE(f.one.get(i)) << i;
}

TEST(BlockFiles, AFileThatAnEngineRemovedBeforeItEndedIsCountedOnce) {
  // Number of files. `other` changes fewer than 1/16 of them, so `one` does not read the folder again.
  constexpr int kMost = 64;
  Files one(kMost);
  for (int i = 0; i < kMost; ++i) ASSERT_TRUE(one.put(i));
  auto other = BlockFiles::open(one.folder.path(), kFormat, kMost * kStride).value();
  for (int i = kMost; i < kMost + 3; ++i) ASSERT_TRUE(Shared::put(*other, i));
  other.reset();
  for (int i = kMost + 3; i < 2 * kMost + 3; ++i) ASSERT_TRUE(one.put(i));
  EXPECT_EQ(one.count_on_disk(), kMost);
}

TEST(BlockFiles, AFileThatMadeRoomForAFailedWriteIsCountedOnce) {
  constexpr int kMost = 64;
  Files one(kMost);
  for (int i = 0; i < kMost; ++i) ASSERT_TRUE(one.put(i));
  auto other = BlockFiles::open(one.folder.path(), kFormat, kMost * kStride).value();
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tiny{3000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tiny);
  EXPECT_FALSE(Shared::put(*other, kMost));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(one.count_on_disk(), kMost - 1) << "the evicted file is gone";
  other.reset();
  for (int i = kMost + 1; i < 2 * kMost + 1; ++i) ASSERT_TRUE(one.put(i));
  EXPECT_EQ(one.count_on_disk(), kMost);
}

TEST(BlockFiles, AnEngineThatComesLeavesWhatOthersWrite) {
  Shared f;
  ASSERT_TRUE(f.one.put(1));
  const fs::path unfinished = f.one.path(1).string() + ".7-1.part";
  std::ofstream(unfinished) << "half";
  const auto third = BlockFiles::open(f.one.folder.path(), kFormat, 100 * kStride).value();
  EXPECT_TRUE(fs::exists(unfinished)) << "it may be another engine's";
}

TEST(BlockFiles, EnginesThatWriteAtOnceSeeWholeBlocksOrNone) {
  Shared f(10);
  std::atomic<int> read = 0;
  std::vector<std::thread> threads;
  for (BlockFiles* files : {f.one.files.get(), f.other.get()})
    for (const int first : {0, 7})
      threads.emplace_back([&, files, first] {
        for (int i = 0; i < 300; ++i) {
          const int number = (first + i) % 25;
          EXPECT_TRUE(Shared::put(*files, number));
          Shared::use(*files, number);
          const int wanted = (number + 20) % 25;
          Shared::finds(*files, wanted);
          const Result<> got = files->read(key(wanted), [&](std::span<const std::byte> contents) {
            EXPECT_TRUE(std::ranges::equal(contents, contents_of(wanted)));
            ++read;
          });
          EXPECT_TRUE(got || got.error().code == ErrorCode::not_found) << got.error().message;
          EXPECT_LE(f.one.count_on_disk(), 10);
        }
      });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(read, 100);
}

TEST(BlockFiles, ModelsHaveTheirOwn) {
  Files f;
  ASSERT_TRUE(f.put(1));
  BlockFormat other = kFormat;
  other.fingerprint = "another";
  EXPECT_EQ(BlockFiles::open(f.folder.path(), other, kStride).value()->count(), 0);
}

}  // namespace
}  // namespace octavo
