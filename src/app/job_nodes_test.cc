#include "app/job_nodes.h"

#include <gtest/gtest.h>

#include <map>

namespace octavo {
namespace {

Environment of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

TEST(JobNodes, AStepOfSlurmsNamesItsHosts) {
  const auto nodes_of = [](const char* list, const char* rank) {
    return nodes_of_job(of({{"SLURM_STEP_NUM_NODES", "4"}, {"SLURM_NODEID", rank}, {"SLURM_STEP_NODELIST", list}}));
  };
  const NodeOptions nodes = nodes_of("gpu[003-006]", "2").value();
  EXPECT_EQ(nodes.count, 4);
  EXPECT_EQ(nodes.rank, 2);
  EXPECT_EQ(nodes.master_addr, "gpu003");
  EXPECT_EQ(nodes_of("a,b,c,d", "0")->master_addr, "a");
  EXPECT_EQ(nodes_of("a,b[2-4]", "0")->master_addr, "a");
  EXPECT_EQ(nodes_of("rack1-[7,9-11]", "0")->master_addr, "rack1-7");
  EXPECT_EQ(nodes_of("n[1-2].cluster,n[5-6].cluster", "0")->master_addr, "n1.cluster");
  EXPECT_EQ(nodes_of("gpu[003-006]", "4").error().field, "SLURM_NODEID");
  EXPECT_EQ(nodes_of("gpu[003-006]", "x").error().field, "SLURM_NODEID");
  EXPECT_EQ(nodes_of("", "0").error().field, "SLURM_STEP_NODELIST");
  EXPECT_EQ(nodes_of("gpu[", "0").error().field, "SLURM_STEP_NODELIST");
}

TEST(JobNodes, ALeaderWorkerSetsGroupIsAJob) {
  const NodeOptions nodes = nodes_of_job(of({{"LWS_GROUP_SIZE", "2"},
                                             {"LWS_WORKER_INDEX", "1"},
                                             {"LWS_LEADER_ADDRESS", "model-0.model.default"}}))
                                .value();
  EXPECT_EQ(nodes.count, 2);
  EXPECT_EQ(nodes.rank, 1);
  EXPECT_EQ(nodes.master_addr, "model-0.model.default");
}

TEST(JobNodes, ElsewhereThereIsOneHost) {
  EXPECT_EQ(nodes_of_job(of({}))->count, 1);
  // A batch script is not a job step, and a group of one member has no peers.
  EXPECT_EQ(nodes_of_job(of({{"SLURM_JOB_NUM_NODES", "4"}, {"SLURM_NODEID", "0"}}))->count, 1);
  EXPECT_EQ(nodes_of_job(of({{"LWS_GROUP_SIZE", "1"}, {"LWS_WORKER_INDEX", "0"}}))->count, 1);
}

}  // namespace
}  // namespace octavo
