#include "batches/store.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"
#include "batches/answers.h"
#include "batches/line.h"

namespace octavo::batches {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StoreTest : public ::testing::Test {
 protected:
  void open(std::int64_t bytes_max = 1 << 20, bool clients = false) {
    store_ = Store::open(folder(), bytes_max, clients).value();
  }
  std::string folder() const { return (scratch_ / "batches").string(); }
  StoredFile add(const std::string& id, const std::string& content, const std::string& owner = "me") {
    return store_
        ->add_file({.id = id, .owner = owner, .filename = "f", .purpose = std::string(kInput)}, content)
        .value();
  }
  Batch add_batch(const std::string& id, const std::string& input, std::string_view protocol = kOpenai,
                  const std::string& owner = "me") {
    Batch batch{.id = id, .owner = owner, .protocol = std::string(protocol)};
    batch.status = kInProgress;
    batch.input_file = input;
    return store_->add_batch(batch).value();
  }
  std::string content(const std::string& id) const {
    std::ifstream file(store_->path_of(id));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string line(const std::string& id) {
    return R"({"custom_id":")" + id + R"(","method":"POST","url":"/v1/completions","body":{}})" + "\n";
  }

  const ScratchDirectory scratch_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, FilesOutliveTheProcess) {
  open();
  add("file-1", "abc");
  std::ofstream(store_->path_of("file-2")) << "of a process that was killed before it was recorded";
  store_.reset();
  open();
  EXPECT_EQ(store_->file("me", "file-1").value().bytes, 3);
  EXPECT_EQ(content("file-1"), "abc");
  EXPECT_FALSE(std::filesystem::exists(store_->path_of("file-2")));
}

TEST_F(StoreTest, OneServerUsesTheFolder) {
  open();
  const auto second = Store::open(folder(), 1 << 20, false);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().field, "batch-dir");
  EXPECT_THAT(second.error().message, HasSubstr("no other server"));
}

TEST_F(StoreTest, ClientsSeeTheirOwn) {
  open();
  add("file-1", "a");
  add("file-2", "b", "you");
  EXPECT_EQ(store_->file("you", "file-1").error().code, ErrorCode::not_found);
  EXPECT_FALSE(store_->remove_file("you", "file-1"));
  EXPECT_EQ(store_->files("you", "", {}).value().records.size(), 1U);
}

TEST_F(StoreTest, PagesGoBothWays) {
  open();
  for (const char* id : {"b1", "b2", "b3", "b4", "b5"}) add_batch(id, "file");
  const auto ids = [&](const PageOf& page) {
    std::vector<std::string> all;
    const Page<Batch> found = store_->batches("me", kOpenai, page).value();
    for (const Batch& batch : found.records) all.push_back(batch.id);
    return all;
  };
  EXPECT_THAT(ids({.limit = 2}), ElementsAre("b5", "b4"));
  EXPECT_THAT(ids({.after = "b4", .limit = 2}), ElementsAre("b3", "b2"));
  EXPECT_THAT(ids({.before = "b2", .limit = 2}), ElementsAre("b4", "b3"));
  EXPECT_THAT(ids({.limit = 2, .oldest_first = true}), ElementsAre("b1", "b2"));
  EXPECT_TRUE(store_->batches("me", kOpenai, {.limit = 4}).value().has_more);
  EXPECT_FALSE(store_->batches("me", kOpenai, {.limit = 5}).value().has_more);
  EXPECT_FALSE(store_->batches("me", kOpenai, {.after = "b9"}));
}

TEST_F(StoreTest, ALineHasOneAnswer) {
  open();
  add("file-1", line("a") + line("b"));
  add_batch("b1", "file-1");
  const LineAnswer first{.batch = "b1", .line = 1, .custom_id = "a", .status = 200, .body = R"("first")"};
  LineAnswer again = first;
  again.body = R"("again")";
  EXPECT_TRUE(store_->add_answers(std::vector{first, again}));
  store_.reset();
  open();
  EXPECT_TRUE(store_->add_answers(std::vector{again}));
  EXPECT_THAT(store_->answered("b1").value(), ElementsAre(1));
  EXPECT_EQ(store_->counts("b1").value().completed, 1);
  EXPECT_TRUE(finish_batch(*store_, "b1", kCompleted));
  const Batch batch = store_->batch("me", kOpenai, "b1").value();
  EXPECT_THAT(content(batch.output_file), HasSubstr("first"));
  EXPECT_THAT(content(batch.error_file), HasSubstr("batch_cancelled")) << "no line is lost";
  EXPECT_EQ(batch.total, 2);
  EXPECT_TRUE(store_->answered("b1").value().empty()) << "they are in the files now";
}

TEST_F(StoreTest, AFileIsKeptWhileABatchReadsIt) {
  open();
  add("file-1", line("a"));
  add_batch("b1", "file-1");
  EXPECT_THAT(store_->remove_file("me", "file-1").error().message, HasSubstr("b1"));
  EXPECT_TRUE(finish_batch(*store_, "b1", kExpired));
  EXPECT_TRUE(store_->remove_file("me", "file-1"));
  EXPECT_EQ(store_->batch("me", kOpenai, "b1").value().status, kExpired);
}

TEST_F(StoreTest, MessageBatchesHaveOneFileInAnthropicsShape) {
  open();
  StoredFile file{.id = "file-1", .owner = "me", .purpose = std::string(kMessages)};
  ASSERT_TRUE(store_->add_file(file, line("a") + line("b") + line("c")));
  add_batch("m1", "file-1", kAnthropic);
  EXPECT_TRUE(store_->add_answers(std::vector<LineAnswer>{
      {.batch = "m1", .line = 1, .custom_id = "a", .status = 200, .body = R"({"type":"message"})"},
      {.batch = "m1", .line = 2, .custom_id = "b", .status = 400, .body = R"({"type":"error"})"}}));
  EXPECT_TRUE(finish_batch(*store_, "m1", kCancelled));
  const Batch batch = store_->batch("me", kAnthropic, "m1").value();
  EXPECT_EQ(content(batch.output_file),
            R"({"custom_id":"a","result":{"type":"succeeded","message":{"type":"message"}}}
{"custom_id":"b","result":{"type":"errored","error":{"type":"error"}}}
{"custom_id":"c","result":{"type":"canceled"}}
)");
  EXPECT_TRUE(store_->files("me", "", {}).value().records.empty()) << "hidden from /v1/files";
  EXPECT_FALSE(store_->file("me", batch.output_file));
  EXPECT_TRUE(store_->remove_batch(batch));
  EXPECT_FALSE(std::filesystem::exists(store_->path_of(batch.output_file)));
}

TEST_F(StoreTest, FilesAndAnswersHaveALimitOfBytes) {
  open(10);
  add("file-1", "12345678");
  EXPECT_TRUE(store_->check_space("me"));
  const auto refused = store_->add_file({.id = "file-2", .owner = "me"}, "123");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_THAT(
      refused.error().message,
      HasSubstr("has 8 bytes of files and batches, and 3 more exceed --batch-dir-bytes 10: delete files"));
  const Batch batch = add_batch("b", "file-1");
  ASSERT_TRUE(
      store_->add_answers(std::vector<LineAnswer>{{.batch = "b", .line = 1, .status = 200, .body = "{ }"}}));
  EXPECT_FALSE(store_->check_space("me")) << "answers count before the output file exists";
  store_.reset();
  open(10);
  EXPECT_FALSE(store_->check_space("me")) << "and after a restart";
  ASSERT_TRUE(store_->remove_file("you", "file-1").error().code == ErrorCode::not_found);
  ASSERT_TRUE(store_->finish(batch, {}));
  EXPECT_TRUE(store_->check_space("me")) << "an ended batch has no answers";
}

TEST_F(StoreTest, OneClientHasAQuarterOfTheLimits) {
  open(40, true);
  add("file-1", "12345678");
  const auto refused = store_->add_file({.id = "file-2", .owner = "me"}, "123");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_THAT(
      refused.error().message,
      HasSubstr(
          "you have 8 bytes of files and batches, and 3 more exceed 10, the limit of one client (a quarter "
          "of --batch-dir-bytes 40)"));
  add("file-3", "1234567890", "you");
  add_batch("mine", "file-1");
  add_batch("yours", "file-3", kOpenai, "you");
  ASSERT_TRUE(
      store_->add_answers(std::vector<LineAnswer>{{.batch = "mine", .line = 1, .status = 200, .body = "{ }"},
                                                  {.batch = "yours", .line = 1, .status = 200}}));
  EXPECT_FALSE(store_->check_space("me")) << "answers count for the client of their batch";
  EXPECT_TRUE(store_->check_space("you"));
  store_.reset();
  open(40, true);
  EXPECT_FALSE(store_->check_space("me")) << "and after a restart";
  EXPECT_TRUE(store_->check_space("you"));
}

TEST_F(StoreTest, OneClientHasAQuarterOfTheBatches) {
  open(1 << 20, true);
  for (int i = 0; i < kUnfinishedMax / 4; ++i) add_batch(std::to_string(i), "f");
  const auto refused = store_->add_batch({.id = "more", .owner = "me", .status = std::string(kInProgress)});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("you have 250 unfinished batches"));
  EXPECT_TRUE(store_->add_batch({.id = "other", .owner = "you", .status = std::string(kInProgress)}));
}

TEST_F(StoreTest, ABatchWithoutItsInputEnds) {
  open();
  add("file-1", line("a") + line("b"));
  add_batch("b", "file-1");
  ASSERT_TRUE(store_->add_answers(
      std::vector<LineAnswer>{{.batch = "b", .line = 2, .custom_id = "b", .status = 200, .body = "{}"}}));
  ASSERT_TRUE(store_->change("b", [](Batch& now) -> Result<> {
    now.status = kCancelling;
    now.total = 2;
    return {};
  }));
  std::filesystem::remove(store_->path_of("file-1"));
  const auto ended = finish_batch(*store_, "b", kCancelled);
  ASSERT_TRUE(ended) << ended.error().message;
  const Batch batch = store_->batch("me", kOpenai, "b").value();
  EXPECT_EQ(batch.status, kCancelled);
  EXPECT_EQ(batch.total, 2);
  EXPECT_EQ(batch.completed, 1);
  EXPECT_THAT(content(batch.output_file), HasSubstr("\"custom_id\":\"b\""));
}

}  // namespace
}  // namespace octavo::batches
