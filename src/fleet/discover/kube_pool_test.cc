#include "fleet/discover/kube_pool.h"

#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <fstream>

#include "base/testing/scratch_directory.h"

namespace octavo::fleet {
namespace {

Result<KubePoolOptions> read(const std::string& spec) {
  return read_inference_pool(boost::json::parse("{\"spec\": " + spec + "}").get_object());
}

TEST(InferencePool, SelectsPodsAndPorts) {
  const auto pool = read(
      R"({"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}, {"number": 8001}],
                             "endpointPickerRef": {"name": "epp"}})");
  ASSERT_TRUE(pool) << pool.error().message;
  EXPECT_EQ(pool->selector, (LabelSelector{{"app", "vllm"}}));
  EXPECT_EQ(pool->ports, (std::vector<int>{8000, 8001}));
}

TEST(InferencePool, MistakesNameTheField) {
  const auto field = [](const std::string& spec) { return read(spec).error().field; };
  EXPECT_EQ(field("{}"), "spec.selector.matchLabels");
  EXPECT_EQ(field(R"({"selector": {"matchLabels": {}}})"), "spec.selector.matchLabels");
  EXPECT_EQ(field(R"({"selector": {"matchLabels": {"a": 1}}})"), "spec.selector.matchLabels");
  const std::string labels = R"("selector": {"matchLabels": {"a": "1"}})";
  EXPECT_EQ(field("{" + labels + "}"), "spec.targetPorts");
  EXPECT_EQ(field("{" + labels + R"(, "targetPorts": [{"number": 0}]})"), "spec.targetPorts");
  EXPECT_EQ(field("{" + labels + R"(, "targetPorts": [{}]})"), "spec.targetPorts");
  EXPECT_EQ(field("{" + labels +
                  R"(, "targetPorts": [{"number":1},{"number":2},{"number":3},{"number":4},{"number":5},
                                     {"number":6},{"number":7},{"number":8},{"number":9}]})"),
            "spec.targetPorts");
}

TEST(KubeApi, IsAnUrlOrWhatPodsAreGiven) {
  EXPECT_EQ(kube_api_of_url("http://127.0.0.1:8001")->url.port, 8001);
  EXPECT_EQ(kube_api_of_url("http://127.0.0.1:8001/x").error().field, "kube-api");
  const ScratchDirectory folder;
  const auto write = [&](const char* name, const char* text) { std::ofstream(folder.path() / name) << text; };
  EXPECT_EQ(kube_api_in_cluster("", "", folder.path()).error().field, "kube-api");
  EXPECT_FALSE(kube_api_in_cluster("10.0.0.1", "443", folder.path())) << "there is no token";
  write("token", "secret\n");
  write("namespace", "serving");
  const auto api = kube_api_in_cluster("fd00::1", "443", folder.path());
  ASSERT_TRUE(api) << api.error().message;
  EXPECT_TRUE(api->url.tls);
  EXPECT_EQ(api->url.host, "fd00::1");
  EXPECT_EQ(api->space, "serving");
  for (const char* wrong : {"", "a b", "a/b", "A"}) EXPECT_FALSE(check_kube_name(wrong, "x")) << wrong;
  EXPECT_TRUE(check_kube_name("inference.networking.k8s.io", "x"));
}

}  // namespace
}  // namespace octavo::fleet
