#include "fleet/discover/endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "fleet/discover/polled_pool.h"

namespace octavo::fleet {
namespace {

using testing::ElementsAre;
using testing::Pair;

Result<std::vector<Endpoint>> read(const std::string& text) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path() / "endpoints.yaml";
  std::ofstream(path) << text;
  return read_endpoints_file(path);
}

TEST(Endpoints, AnAddressIsAnIpAndAPort) {
  EXPECT_EQ(endpoint_of_address("127.0.0.1:8000")->url, "http://127.0.0.1:8000");
  EXPECT_EQ(endpoint_of_address("[::1]:8000")->name, "[::1]:8000");
  for (const char* wrong : {"", ":", "localhost:8000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0",
                            "127.0.0.1:65536", "::1:8000", "[]:80", "127.0.0.1:80x"})
    EXPECT_FALSE(endpoint_of_address(wrong)) << wrong;
}

TEST(Endpoints, AFileListsThem) {
  const auto read_ones = read(
      "endpoints:\n"
      "- {name: a, namespace: default, address: 10.0.0.1, port: \"8000\", labels: {llm-d.ai/role: decode}}\n"
      "- {address: 10.0.0.2, port: '8001'}\n");
  ASSERT_TRUE(read_ones) << read_ones.error().message;
  ASSERT_EQ(read_ones->size(), 2U);
  EXPECT_EQ(read_ones->at(0).name, "10.0.0.1:8000");
  EXPECT_EQ(read_ones->at(0).role, Role::decode);
  EXPECT_THAT(read_ones->at(0).labels, ElementsAre(Pair("llm-d.ai/role", "decode")));
  EXPECT_EQ(read_ones->at(1).url, "http://10.0.0.2:8001");
}

TEST(Endpoints, ThoseOfOneAddressAreItsRanks) {
  const auto ones = read(
      "endpoints:\n"
      "- {address: 10.0.0.1, port: '8000'}\n"
      "- {address: 10.0.0.2, port: '8000'}\n"
      "- {address: 10.0.0.1, port: '8001'}\n");
  ASSERT_TRUE(ones) << ones.error().message;
  EXPECT_EQ(ones->at(0).rank, 0);
  EXPECT_EQ(ones->at(1).rank, 0);
  EXPECT_EQ(ones->at(2).rank, 1);
}

TEST(Endpoints, MistakesNameTheField) {
  const auto field = [](const std::string& text) { return read(text).error().field; };
  EXPECT_EQ(field("endpoints: [{address: 10.0.0.1, port: '1', x: 1}]"), "endpoints[0].x");
  EXPECT_EQ(field("endpoints: [{address: host, port: '1'}]"), "endpoints[0].address");
  EXPECT_EQ(field("endpoints: [{address: 10.0.0.1, port: 1}]"), "endpoints[0].port");
  EXPECT_EQ(field("endpoints: [{address: 10.0.0.1, port: '1', labels: {a: 1}}]"), "endpoints[0].labels.a");
  EXPECT_EQ(field("endpoints: [{address: 10.0.0.1, port: '1'}, {address: 10.0.0.1, port: '1'}]"),
            "endpoints[1]");
  EXPECT_EQ(field("endpoint: []"), "endpoint");
  EXPECT_EQ(field("[]"), "endpoints");
}

// A person who corrects a file waits for no longer than before the mistake.
TEST(PolledPool, AFileThatWasWrongForLongIsReadSoonAfterItIsCorrected) {
  constexpr int kFailures = 10;  // pauses that double would take minutes
  std::atomic<int> reads = 0;
  std::atomic<bool> found = false;
  const PolledPool pool({.source = "file",
                         .interval_ms = 1,
                         .read = [&]() -> Result<std::vector<Endpoint>> {
                           if (++reads <= kFailures) return invalid("endpoints", "must be a list");
                           return std::vector<Endpoint>{};
                         }},
                        [&](const std::vector<Endpoint>&) { found = true; });
  EXPECT_TRUE(eventually([&] { return found.load(); }));
}

}  // namespace
}  // namespace octavo::fleet
