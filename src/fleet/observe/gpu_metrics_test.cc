#include "fleet/observe/gpu_metrics.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

// dcgm-exporter's page, with two pods and an unused GPU
constexpr std::string_view kPage =
    "# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).\n"
    "# TYPE DCGM_FI_DEV_SM_CLOCK gauge\n"
    "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-604ac76c\",pci_bus_id=\"00000000:07:00.0\",device=\"nvidia0\","
    "modelName=\"NVIDIA A100\",Hostname=\"n1\",container=\"vllm\",namespace=\"models\",pod=\"llama-0\"} 1410\n"
    "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
    "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
    "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-604ac76c\",container=\"vllm\",namespace=\"models\",pod=\"llama-0\"} "
    "37\n"
    "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-604ac76d\",container=\"vllm\",namespace=\"models\",pod=\"llama-0\"} "
    "62\n"
    "DCGM_FI_DEV_GPU_UTIL{gpu=\"2\",UUID=\"GPU-604ac76e\",container=\"vllm\",namespace=\"models\",pod=\"llama-1\"} "
    "100\n"
    "DCGM_FI_DEV_GPU_UTIL{gpu=\"3\",UUID=\"GPU-604ac76f\"} 5\n";

TEST(GpuMetrics, TheBusiestOfAPodsOwn) {
  EXPECT_EQ(read_gpu_utilization(kPage, "llama-0"), 0.62);
  EXPECT_EQ(read_gpu_utilization(kPage, "llama-1"), 1);
  EXPECT_EQ(read_gpu_utilization(kPage, "another"), 0.05) << "what names no pod is everybody's";
  EXPECT_EQ(read_gpu_utilization(kPage, ""), 1) << "all of them";
}

TEST(GpuMetrics, PagesWithoutOne) {
  for (const char* page : {"", "DCGM_FI_DEV_GPU_UTIL\n", "DCGM_FI_DEV_GPU_UTIL{pod=\"a\"} nan\n",
                           "DCGM_FI_DEV_GPU_UTIL{pod=\"a\"} 10\n", "DCGM_FI_DEV_GPU_TEMP 40\n"})
    EXPECT_FALSE(read_gpu_utilization(page, "b")) << page;
  EXPECT_EQ(read_gpu_utilization("DCGM_FI_DEV_GPU_UTIL 1e9\n", "b"), 1);
  EXPECT_EQ(read_gpu_utilization("DCGM_FI_DEV_GPU_UTIL -3\n", "b"), 0);
}

}  // namespace
}  // namespace octavo::fleet
