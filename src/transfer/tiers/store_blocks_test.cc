#include "transfer/tiers/store_blocks.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "transfer/testing/redis.h"
#include "transfer/testing/s3.h"
#include "transfer/tiers/library_store.h"
#include "transfer/tiers/redis_client.h"
#include "transfer/tiers/s3_client.h"

namespace octavo {
namespace {

int leading(const BlockStore& store, const std::vector<Hash128>& keys) {
  const std::vector<bool> stored = store.contains(keys);
  return static_cast<int>(std::ranges::find(stored, false) - stored.begin());
}

using Mood = TestRedis::Mood;

const BlockFormat kFormat{.fingerprint = "model", .dtype = "i32", .block_size = 16, .bytes = 4};

std::vector<Hash128> some_keys(int count) {
  std::vector<Hash128> keys;
  for (int i = 0; i < count; ++i) keys.push_back({static_cast<std::uint64_t>(i), 5});
  return keys;
}

std::vector<std::byte> contents_of(Hash128 key) {
  std::vector<std::byte> contents(static_cast<std::size_t>(kFormat.bytes));
  contents[0] = static_cast<std::byte>(key.low);
  return contents;
}

Result<> write_to(BlockStore& blocks, Hash128 key) {
  return blocks.write(key, [&](std::span<std::byte> to) { std::ranges::copy(contents_of(key), to.begin()); });
}

Result<> read_from(BlockStore& blocks, Hash128 key) {
  bool same = false;
  const Result<> good = blocks.read(key, [&](std::span<const std::byte> contents) {
    same = std::ranges::equal(contents, contents_of(key));
  });
  EXPECT_EQ(same, good.has_value());
  return good;
}

StoreKeys keys_of(const TestRedis&) { return {}; }
StoreKeys keys_of(const TestS3& server) { return server.keys(); }

template <class Server>
struct Store {
  Server server;
  std::unique_ptr<BlockStore> blocks = another(kFormat);

  std::unique_ptr<BlockStore> another(const BlockFormat& format, int silence_ms = 5'000) {
    return StoreBlocks::open(server.url(), keys_of(server), format, silence_ms).value();
  }

  void write(std::span<const Hash128> keys) {
    for (const Hash128& key : keys) ASSERT_TRUE(write_to(*blocks, key));
  }
  ErrorCode failure(Hash128 key) {
    const Result<> good = read_from(*blocks, key);
    return good ? ErrorCode{} : good.error().code;
  }
};

template <class Server>
class StoreBlocksOf : public testing::Test {};
using Servers = testing::Types<TestRedis, TestS3>;
TYPED_TEST_SUITE(StoreBlocksOf, Servers);

TEST(S3Url, SaysWhere) {
  const auto all = parse_s3_url("https://[::1]:9000/bucket/a/b/").value();
  EXPECT_EQ(all.host, "::1");
  EXPECT_EQ(all.port, 9000);
  EXPECT_TRUE(all.tls);
  EXPECT_EQ(all.folder, "/bucket/a/b/");
  EXPECT_EQ(parse_s3_url("http://store/bucket").value().folder, "/bucket/");
  for (const char* wrong :
       {"http://", "http://a", "http://a/", "http://a/b?c=d", "http://a/b//c", "http://a/b%20c"})
    EXPECT_FALSE(parse_s3_url(wrong)) << wrong;
}

TEST(S3Store, WhoSignsWithAnotherKeyIsRefused) {
  TestS3 server;
  StoreKeys keys = server.keys();
  keys.secret = "another";
  for (const StoreKeys& wrong : {keys, StoreKeys{}}) {
    const auto blocks = StoreBlocks::open(server.url(), wrong, kFormat).value();
    const Result<> written = write_to(*blocks, {1, 2});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
    EXPECT_NE(written.error().message.find("SignatureDoesNotMatch"), std::string::npos)
        << written.error().message;
    EXPECT_FALSE(blocks->reachable());
  }
}

TEST(RedisUrl, SaysWhereAndWho) {
  const auto all = parse_redis_url("valkey://me:se:cret@[::1]:7000/3").value();
  EXPECT_EQ(all.host, "::1");
  EXPECT_EQ(all.port, 7000);
  EXPECT_EQ(all.user, "me");
  EXPECT_EQ(all.password, "se:cret");
  EXPECT_EQ(all.database, 3);
  const auto least = parse_redis_url("redis://cache").value();
  EXPECT_EQ(least.host, "cache");
  EXPECT_EQ(least.port, 6379);
  EXPECT_EQ(parse_redis_url("redis://:secret@cache/").value().password, "secret");
  for (const char* wrong :
       {"redis://", "redis://a:0", "redis://a:b", "redis://a/b", "redis://a/-1", "redis://me@a"})
    EXPECT_FALSE(parse_redis_url(wrong)) << wrong;
  EXPECT_FALSE(is_redis_url("/var/redis://"));
}

TYPED_TEST(StoreBlocksOf, WhatOneWritesAnotherFinds) {
  Store<TypeParam> store;
  const std::vector<Hash128> keys = some_keys(300);
  store.write(std::span(keys).first(200));
  EXPECT_EQ(store.server.count(), 200u);
  const auto other = store.another(kFormat);
  EXPECT_EQ(leading(*other, keys), 0) << "it has not asked";
  other->look_up(keys);
  EXPECT_EQ(leading(*other, keys), 200);
  EXPECT_TRUE(read_from(*other, keys[7]));
  store.server.clear();
  other->look_up(keys);
  EXPECT_EQ(leading(*other, keys), 0);
  BlockFormat larger = kFormat;
  larger.fingerprint = "another";
  store.write(keys);
  const auto stranger = store.another(larger);
  stranger->look_up(keys);
  EXPECT_EQ(leading(*stranger, keys), 0);
}

TYPED_TEST(StoreBlocksOf, WhatIsNotTheBlockIsRemoved) {
  Store<TypeParam> store;
  const std::vector<Hash128> keys = some_keys(3);
  store.write(keys);
  store.server.spoil(
      // changes the first byte after the header
      [](std::string& value) { value[64] = static_cast<char>(value[64] + 1); });
  EXPECT_EQ(store.failure(keys[0]), ErrorCode::corrupt);
  store.server.spoil([](std::string& value) { value.resize(3); });
  EXPECT_EQ(store.failure(keys[1]), ErrorCode::corrupt);
  EXPECT_EQ(store.server.count(), 1u);
  EXPECT_EQ(leading(*store.blocks, keys), 0);
  EXPECT_EQ(store.failure(keys[0]), ErrorCode::not_found);
  store.write(keys);
  EXPECT_EQ(store.failure(keys[0]), ErrorCode{});
  store.server.mood = Mood::lying;
  EXPECT_EQ(store.failure(keys[2]), ErrorCode::invalid_argument) << "another's block";
  EXPECT_TRUE(store.blocks->reachable());
}

TYPED_TEST(StoreBlocksOf, AStoreThatFailsIsLeftAloneForAWhile) {
  for (const Mood mood : {Mood::full, Mood::silent}) {
    Store<TypeParam> store;
    const std::vector<Hash128> keys = some_keys(3);
    store.write(std::span(keys).first(1));
    store.server.mood = mood;
    store.blocks = store.another(kFormat, 200);
    const Result<> written = write_to(*store.blocks, keys[1]);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::unavailable);
    EXPECT_FALSE(store.blocks->reachable());
    EXPECT_EQ(store.failure(keys[0]), ErrorCode::unavailable);
  }
  Store<TypeParam> store;
  const std::vector<Hash128> keys = some_keys(1);
  store.write(keys);
  store.server.mood = Mood::nonsense;
  EXPECT_EQ(store.failure(keys[0]), ErrorCode::corrupt);
  store.blocks->look_up(keys);
  EXPECT_EQ(leading(*store.blocks, keys), 0);
}

TEST(StoreBlocks, NobodyIsThereYet) {
  int port = 0;
  close(listen_at("127.0.0.1", port).value());
  const auto blocks = StoreBlocks::open("redis://127.0.0.1:" + std::to_string(port), {}, kFormat).value();
  EXPECT_FALSE(blocks->reachable());
}

// Returns the path of the library. It is in the folder of the test program, or in a parent folder.
std::string memory_store() {
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (!std::filesystem::exists(folder / "libkv_memory_store.so") && folder.has_relative_path())
    folder = folder.parent_path();
  return (folder / "libkv_memory_store.so").string();
}

TEST(LibraryStore, ALibraryIsAStoreAsAnyOther) {
  const auto open = [](const BlockFormat& format) {
    return StoreBlocks::open(library_url(memory_store(), R"({"some": 1})"), {}, format).value();
  };
  const std::vector<Hash128> keys = some_keys(40);
  const auto writer = open(kFormat), reader = open(kFormat);
  for (const Hash128& key : std::span(keys).first(30)) ASSERT_TRUE(write_to(*writer, key));
  reader->look_up(keys);
  EXPECT_EQ(leading(*reader, keys), 30);
  ASSERT_TRUE(read_from(*reader, keys[7]));
  writer->remove(std::span(keys).subspan(3, 1));
  reader->look_up_each(keys);
  EXPECT_EQ(leading(*reader, keys), 3);
  EXPECT_TRUE(reader->contains(keys[29]));
  EXPECT_EQ(read_from(*reader, keys[3]).error().code, ErrorCode::not_found);
}

TEST(LibraryStore, WhatFailsIsLeftAlone) {
  const auto store = StoreBlocks::open(library_url(memory_store(), "refuse"), {}, kFormat).value();
  EXPECT_FALSE(store->reachable());
  const auto broken = StoreBlocks::open(library_url(memory_store(), "break"), {}, kFormat).value();
  broken->look_up(some_keys(3));
  EXPECT_FALSE(broken->reachable());
  EXPECT_FALSE(store_at(library_url("/nowhere/lib.so", ""), {}));
}

}  // namespace
}  // namespace octavo
