#include "fleet/route/fan_out.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

TEST(FanOut, OnlyRequestsThatEmptyCachesResetTheIndex) {
  for (const char* path :
       {"/flush_cache", "/reset_prefix_cache", "/update_weights_from_disk", "/update_weights_from_tensor",
        "/finish_weight_update", "/collective_rpc", "/sleep", "/release_memory_occupation"})
    EXPECT_TRUE(empties_caches(path)) << path;
  for (const char* path : {"/init_weights_update_group", "/init_weight_transfer_engine",
                           "/start_weight_update", "/update_weight_version", "/weights_checker",
                           "/send_weights_to_remote_instance", "/pause", "/wake_up"})
    EXPECT_FALSE(empties_caches(path)) << path;
}

}  // namespace
}  // namespace octavo::fleet
