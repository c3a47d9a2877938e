#include "fleet/autoscale/connectors/kubernetes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/json/parse.hpp>

#include "http/server.h"

namespace octavo::fleet {
namespace {

// A stand-in for a Kubernetes API server, with one deployment.
struct Cluster {
  std::atomic<int> replicas{3}, puts{0};
  std::atomic<bool> refuses{false};
  std::unique_ptr<http::Server> server =
      http::Server::start({}, [this](std::shared_ptr<http::Exchange> exchange) {
        const http::Request& request = exchange->request();
        if (request.path != "/apis/apps/v1/namespaces/models/deployments/llama/scale")
          return exchange->respond({.status = 404, .body = request.path});
        if (refuses) return exchange->respond({.status = 409, .body = "conflict"});
        if (request.method == "PUT") {
          const auto scale = boost::json::parse(request.body);
          EXPECT_EQ(scale.at("kind").as_string(), "Scale");
          EXPECT_EQ(scale.at("metadata").at("name").as_string(), "llama");
          EXPECT_EQ(scale.at("metadata").at("namespace").as_string(), "models");
          replicas = scale.at("spec").at("replicas").to_number<int>();
          ++puts;
        }
        exchange->respond({.body = replicas == 0
                                       ? std::string(R"({"spec": {}})")
                                       : fmt::format(R"({{"spec": {{"replicas": {}}}}})", replicas.load())});
      }).value();

  KubeScaleOptions options() const {
    return {.api = *kube_api_of_url(server->address()),
            .path = *kube_workload_path("deployment/llama", "models")};
  }
};

TEST(KubernetesConnector, SetsTheScaleOfAWorkloadToZeroAndBack) {
  Cluster cluster;
  KubernetesConnector connector(cluster.options());
  connector.tick(3, 0);
  EXPECT_EQ(cluster.puts, 0) << "it has three";
  connector.tick(0, 1);
  EXPECT_EQ(cluster.replicas, 0);
  connector.tick(0, 2);
  connector.tick(1, 3);
  EXPECT_EQ(cluster.replicas, 1);
  EXPECT_EQ(cluster.puts, 2);
}

TEST(KubernetesConnector, TheClusterSaysHowManyExist) {
  Cluster cluster;
  KubernetesConnector connector(cluster.options());
  EXPECT_EQ(connector.existing({.silent = 8}).value(), 3);
  cluster.refuses = true;
  EXPECT_FALSE(connector.existing({}));
}

TEST(KubernetesConnector, TriesAgainAndNoticesWhatOthersDid) {
  Cluster cluster;
  KubernetesConnector connector(cluster.options());
  cluster.refuses = true;
  connector.tick(5, 0);
  cluster.refuses = false;
  connector.tick(5, 9'000'000);
  EXPECT_EQ(cluster.replicas, 3) << "it waits after a failure";
  connector.tick(5, 10'000'000);
  EXPECT_EQ(cluster.replicas, 5);
  cluster.replicas = 1;
  connector.tick(5, 41'000'000);
  EXPECT_EQ(cluster.replicas, 5);
}

TEST(KubernetesConnector, PathsOfWorkloads) {
  EXPECT_EQ(*kube_workload_path("statefulset/a", "b"), "/apis/apps/v1/namespaces/b/statefulsets/a");
  EXPECT_EQ(*kube_workload_path("leaderworkerset.x-k8s.io/v1/leaderworkersets/a", "b"),
            "/apis/leaderworkerset.x-k8s.io/v1/namespaces/b/leaderworkersets/a");
  for (const char* wrong : {"", "llama", "pod/llama", "deployment/", "deployment/a/b", "deployment/../x"})
    EXPECT_FALSE(kube_workload_path(wrong, "b")) << wrong;
}

}  // namespace
}  // namespace octavo::fleet
