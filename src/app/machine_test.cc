#include "app/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class MachineFiles : public testing::Test {
 protected:
  void write(std::string_view path, std::string_view text) const { root_.write(path, text); }
  Machine read() const {
    Machine machine;
    read_machine_files(root_.path(), machine);
    return machine;
  }

  const ScratchDirectory root_;
};

TEST_F(MachineFiles, AreReadWhereTheyAre) {
  write("proc/cpuinfo", "processor\t: 0\nmodel name\t: A Processor\n");
  write("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    8192 kB\n");
  write("proc/self/cgroup", "0::/system/octavo\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/system/memory.max", "4096000\n");
  write("sys/fs/cgroup/system/octavo/memory.max", "8192000\n");
  write("sys/devices/system/cpu/online", "0-3,8\n");
  write("sys/devices/system/node/online", "0-1\n");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  for (const auto& [slot, vendor, kind] : {std::tuple{"01:00.0", "0x10de", "0x030200"},     // a GPU of NVIDIA
                                           std::tuple{"01:00.1", "0x10de", "0x040300"},     // its sound
                                           std::tuple{"02:00.0", "0x10de", "0x030000"},     // another GPU
                                           std::tuple{"03:00.0", "0x8086", "0x030000"}}) {  // of Intel
    const std::string folder = std::string("sys/bus/pci/devices/0000:") + slot;
    write(folder + "/vendor", std::string(vendor) + "\n");
    write(folder + "/class", std::string(kind) + "\n");
  }
  const Machine machine = read();
  EXPECT_EQ(machine.nvidia_cards, 2);
  EXPECT_EQ(machine.processor, "A Processor");
  EXPECT_EQ(machine.memory, 16u << 20);
  EXPECT_EQ(machine.available, 4096000u);
  EXPECT_EQ(machine.memory_limit, 4096000u) << "the smallest on the way up";
  EXPECT_EQ(machine.processors, 5);
  EXPECT_EQ(machine.numa_nodes, 2);
  EXPECT_EQ(machine.huge_pages, "never");
}

TEST_F(MachineFiles, MayBeMissingOrMakeNoSense) {
  write("proc/meminfo", "\nMemTotal: lots\n");
  write("proc/self/cgroup", "0::/../..\n");
  const Machine machine = read();
  EXPECT_EQ(machine.memory, 0u);
  EXPECT_EQ(machine.memory_limit, std::nullopt);
  EXPECT_EQ(machine.numa_nodes, 1);
  EXPECT_THAT(doctor_page(machine), HasSubstr("name not known"));
}

Machine good() {
  return {.processor = "P",
          .processors = 8,
          .usable = 8,
          .numa_nodes = 1,
          .instructions = "avx2",
          .lacking = "not avx512: this processor lacks AVX512F",
          .memory = 16'000'000'000,
          .available = 9'000'000'000,
          .memory_limit = {},
          .huge_pages = "madvise",
          .governor = "performance",
          .open_files = 65536,
          .gpu = "none",
          .nccl = "2.21.5",
          .model_cache = "/cache",
          .model_cache_free = 90'000'000'000};
}

TEST(Doctor, SaysWhatIsThere) {
  EXPECT_THAT(advice(good()), IsEmpty());
  const std::string page = doctor_page(good());
  EXPECT_THAT(page, HasSubstr("processor     P, 8 of 8 processors usable, 1 NUMA node\n"));
  EXPECT_THAT(page, HasSubstr("instructions  avx2; not avx512: this processor lacks AVX512F\n"));
  EXPECT_THAT(page, HasSubstr("memory        16.0 GB, 9.0 GB available, no cgroup limit\n"));
  EXPECT_THAT(page, HasSubstr("\nNothing to change.\n"));
}

TEST(Doctor, SaysWhatToChange) {
  Machine bad = good();
  bad.instructions = "";
  bad.huge_pages = "never";
  bad.governor = "powersave";
  bad.numa_nodes = 2;
  bad.open_files = 1024;
  bad.model_cache_free = 1'000'000'000;
  EXPECT_THAT(advice(bad), ElementsAre(StartsWith("processor: not avx512"), StartsWith("huge pages"),
                                       StartsWith("clock"), HasSubstr("2 NUMA nodes"),
                                       HasSubstr("the limit is 1024"), HasSubstr("/cache has only 1.0 GB")));
  EXPECT_THAT(doctor_page(bad), HasSubstr("\nTo change:\n- processor: "));
}

TEST(Doctor, SaysWhyTheModelCacheCannotBeWritten) {
  const ScratchDirectory root;
  root.write("file", "");
  Machine machine = good();
  machine.model_cache = (root.path() / "new/hub").string();
  examine_model_cache(machine);
  EXPECT_EQ(machine.model_cache_problem, "");
  machine.model_cache = (root.path() / "file/hub").string();
  examine_model_cache(machine);
  EXPECT_EQ(machine.model_cache_problem, (root.path() / "file").string() + " is not a folder");
  EXPECT_THAT(advice(machine), ElementsAre(HasSubstr("cannot be written")));
  EXPECT_THAT(doctor_page(machine), HasSubstr("free, cannot be written: "));
}

TEST(Doctor, SaysWhatTheGpusLack) {
  Machine bad = good();
  bad.gpu = invalid("device", "no driver is installed");
  bad.nccl = failure(ErrorCode::unsupported, "no NCCL");
  EXPECT_THAT(advice(bad), IsEmpty()) << "a machine without GPUs needs neither";
  EXPECT_THAT(doctor_page(bad),
              HasSubstr("\ngpu           no driver is installed\nnccl          no NCCL; only ranks on "));
  bad.nvidia_cards = 1;
  EXPECT_THAT(advice(bad), ElementsAre("gpu: this machine has 1 NVIDIA GPU, but no driver is installed"));
  bad.nvidia_cards = 2;
  bad.gpu = "H200";
  EXPECT_THAT(advice(bad), ElementsAre(HasSubstr("pip install nvidia-nccl-cu13")));
}

}  // namespace
}  // namespace octavo
