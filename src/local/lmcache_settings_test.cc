#include "local/lmcache_settings.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <map>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

namespace json = boost::json;

std::string read(const std::string& config, std::map<std::string, std::string> variables) {
  const auto read = with_lmcache_settings(config, [&](const char* name) { return variables[name]; });
  return read ? *read : read.error().message;
}

TEST(LmcacheSettings, TheFlagWinsThenVariablesThenTheFile) {
  const ScratchDirectory directory;
  directory.write("lmcache.yaml",
                  "chunk_size: 256\nlocal_cpu: true\nmax_local_cpu_size: 5.0\nlocal_disk: /file\n");
  const json::value read_config =
      json::parse(read(R"({"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both",
               "kv_connector_extra_config": {"lmcache.local_disk": "/flag"}})",
                       {{"LMCACHE_CONFIG_FILE", (directory / "lmcache.yaml").string()},
                        {"LMCACHE_MAX_LOCAL_CPU_SIZE", "2.5"},
                        {"LMCACHE_LOCAL_CPU", "False"}}));
  EXPECT_EQ(
      read_config.at("kv_connector_extra_config"),
      json::parse(R"({"lmcache.local_disk": "/flag", "lmcache.chunk_size": 256, "lmcache.local_cpu": false,
                            "lmcache.max_local_cpu_size": 2.5})"));
}

TEST(LmcacheSettings, InsideOfSeveralConnectors) {
  const json::value found = json::parse(read(
      R"({"kv_connector": "MultiConnector", "kv_role": "kv_both", "kv_connector_extra_config": {"connectors": [
               {"kv_connector": "NixlConnector"}, {"kv_connector": "LMCacheConnectorV1"}]}})",
      {{"LMCACHE_MAX_LOCAL_CPU_SIZE", "3"}}));
  const json::array& each = found.at("kv_connector_extra_config").at("connectors").as_array();
  EXPECT_FALSE(each[0].as_object().contains("kv_connector_extra_config"));
  EXPECT_EQ(each[1].at("kv_connector_extra_config").at("lmcache.max_local_cpu_size"), 3);
}

TEST(LmcacheSettings, OtherConnectorsStayAsTheyAre) {
  const std::string nixl = R"({"kv_connector": "NixlConnector"})";
  EXPECT_EQ(read(nixl, {{"LMCACHE_CHUNK_SIZE", "9"}}), nixl);
  EXPECT_EQ(read("no LMCacheConnectorV1", {{"LMCACHE_CHUNK_SIZE", "9"}}), "no LMCacheConnectorV1");
}

TEST(LmcacheSettings, AMissingFileIsAnError) {
  const auto missing =
      with_lmcache_settings(R"({"kv_connector": "LMCacheConnectorV1"})", [](const char* name) {
        return std::string(name) == "LMCACHE_CONFIG_FILE" ? std::string("/no/such.yaml") : std::string();
      });
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().field, "LMCACHE_CONFIG_FILE");
}

}  // namespace
}  // namespace octavo
