#include "fleet/autoscale/connectors/kubernetes.h"

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <vector>

#include "base/log.h"
#include "base/quoted_text.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::pair<std::string_view, std::string_view> kWorkloads[] = {
    {"deployment", "apps/v1/deployments"},
    {"replicaset", "apps/v1/replicasets"},
    {"statefulset", "apps/v1/statefulsets"},
};

Result<json::value> answered(Result<http::Response> answer, std::string_view what) {
  if (!answer) return std::unexpected(answer.error());
  if (answer->status / 100 != 2)
    return failure(ErrorCode::io, "{}: the API server returned status {}: {}", what, answer->status,
                   answer->body);
  boost::system::error_code wrong;
  json::value body = json::parse(answer->body, wrong);
  if (wrong) return failure(ErrorCode::io, "{}: the API server's answer is not JSON", what);
  return body;
}

}  // namespace

Result<std::string> kube_workload_path(const std::string& workload, const std::string& space) {
  constexpr std::string_view kField = "kube-workload";
  std::vector<std::string> parts;
  boost::split(parts, workload, boost::is_any_of("/"));
  for (const std::string& part : parts) TRY_VOID(check_kube_name(part, kField));
  TRY_VOID(check_kube_name(space, "kube-namespace"));
  std::string kind = parts.size() == 4 ? parts[0] + "/" + parts[1] + "/" + parts[2] : "";
  for (const auto& [name, path] : kWorkloads)
    if (parts.size() == 2 && parts[0] == name) kind = path;
  if (kind.empty())
    return invalid(
        kField, "{} must be deployment/NAME, statefulset/NAME, replicaset/NAME or GROUP/VERSION/PLURAL/NAME",
        quoted_text(workload));
  const std::size_t plural = kind.rfind('/');
  return fmt::format("/apis/{}/namespaces/{}{}/{}", kind.substr(0, plural), space, kind.substr(plural),
                     parts.back());
}

Result<int> KubernetesConnector::existing(const FleetReading&) {
  TRY(KubeConnection connection, KubeConnection::open(options_.api));
  return read_scale(connection);
}

void KubernetesConnector::tick(int replicas, std::int64_t now_us) {
  if (replicas == wanted_ && now_us < next_us_) return;
  if (const auto done = scale(replicas); !done) {
    log_warning("{}", done.error().message);
    wanted_ = replicas;
    next_us_ = now_us + options_.retry_us;
    return;
  }
  wanted_ = replicas;
  next_us_ = now_us + options_.check_us;
}

Result<int> KubernetesConnector::read_scale(KubeConnection& connection) const {
  TRY(const json::value scale, answered(connection.request("GET", options_.path + "/scale"), options_.path));
  boost::system::error_code wrong;
  const json::value* replicas = scale.find_pointer("/spec/replicas", wrong);
  // Kubernetes omits fields that are 0.
  return replicas && replicas->is_number() ? replicas->to_number<int>(wrong) : 0;
}

Result<> KubernetesConnector::scale(int replicas) const {
  TRY(KubeConnection connection, KubeConnection::open(options_.api));
  TRY(const int existing, read_scale(connection));
  if (existing == replicas) return {};
  const std::size_t name = options_.path.rfind('/');
  const std::size_t plural = options_.path.rfind('/', name - 1);
  const std::size_t space = options_.path.rfind('/', plural - 1);
  const json::object body{{"apiVersion", "autoscaling/v1"},
                          {"kind", "Scale"},
                          {"metadata",
                           {{"name", options_.path.substr(name + 1)},
                            {"namespace", options_.path.substr(space + 1, plural - space - 1)}}},
                          {"spec", {{"replicas", replicas}}}};
  TRY(const json::value scaled,
      answered(connection.request("PUT", options_.path + "/scale", json::serialize(body)), options_.path));
  log_info("{}: {} -> {} replicas", options_.path, existing, replicas);
  return {};
}

}  // namespace octavo::fleet
