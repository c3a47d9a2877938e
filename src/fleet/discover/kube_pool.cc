#include "fleet/discover/kube_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "base/log.h"

namespace octavo::fleet {

namespace json = boost::json;

class KubePool::Sink : public KubeSink {
 public:
  Sink(std::mutex& mutex, std::function<void(const std::string&, const json::object&)> put,
       std::function<void(const std::string&)> removed, std::function<void()> settled)
      : mutex_(mutex), put_(std::move(put)), removed_(std::move(removed)), settled_(std::move(settled)) {}

  void put(const std::string& name, const json::object& object) override {
    const std::lock_guard lock(mutex_);
    put_(name, object);
  }
  void removed(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    removed_(name);
  }
  void settled() override {
    const std::lock_guard lock(mutex_);
    settled_();
  }

 private:
  std::mutex& mutex_;
  const std::function<void(const std::string&, const json::object&)> put_;
  const std::function<void(const std::string&)> removed_;
  const std::function<void()> settled_;
};

KubePool::KubePool(KubePoolOptions options, Endpoints endpoints, Rules rules)
    : options_(std::move(options)), endpoints_(std::move(endpoints)), rules_(std::move(rules)) {
  const std::lock_guard lock(mutex_);
  if (options_.pool.empty()) {
    selected_ = {options_.selector, options_.ports};
    pool_known_ = true;
  } else {
    watch_pool();
    watch_rules();
  }
  watch_pods();
}

KubePool::~KubePool() = default;

void KubePool::watch(std::string path, std::string selector, std::unique_ptr<Sink> sink) {
  sinks_.push_back(std::move(sink));
  watches_.push_back(
      std::make_unique<KubeWatch>(options_.api, std::move(path), std::move(selector), *sinks_.back()));
}

// Watches all pods of the namespace, because the InferencePool's selector may change.
void KubePool::watch_pods() {
  watch(fmt::format("/api/v1/namespaces/{}/pods", options_.space), selector_query(options_.selector),
        std::make_unique<Sink>(
            mutex_,
            [this](const std::string& name, const json::object& object) {
              pods_.erase(name);
              if (auto pod = ready_pod(object)) pods_.emplace(name, *std::move(pod));
            },
            [this](const std::string& name) { pods_.erase(name); },
            [this] {
              pods_known_ = true;
              notify_endpoints();
            }));
}

void KubePool::watch_pool() {
  watch(fmt::format("/apis/{}/v1/namespaces/{}/inferencepools", options_.group, options_.space),
        "fieldSelector=metadata.name%3D" + options_.pool,
        std::make_unique<Sink>(
            mutex_,
            [this](const std::string& name, const json::object& object) {
              if (name != options_.pool) return;
              auto read = read_inference_pool(object);
              if (!read)
                return log_warning("the new version of InferencePool {} is ignored: {}", name,
                                   read.error().message);
              selected_ = {std::move(read->selector), std::move(read->ports)};
            },
            [this](const std::string& name) {
              if (name == options_.pool) selected_.reset();
            },
            [this] {
              if (!std::exchange(pool_known_, true) && !selected_)
                log_warning("the InferencePool {} does not exist in {} yet", options_.pool, options_.space);
              notify_endpoints();
            }));
}

void KubePool::watch_rules() {
  const std::string collection = fmt::format("/apis/llm-d.ai/v1alpha2/namespaces/{}/", options_.space);
  watch(collection + "inferenceobjectives", "",
        std::make_unique<Sink>(
            mutex_,
            [this](const std::string& name, const json::object& object) {
              objectives_.erase(name);
              if (const auto priority = objective_priority(object, options_.pool))
                objectives_[name] = *priority;
            },
            [this](const std::string& name) { objectives_.erase(name); }, [this] { notify_rules(); }));
  watch(collection + "inferencemodelrewrites", "",
        std::make_unique<Sink>(
            mutex_,
            [this](const std::string& name, const json::object& object) {
              rewrites_.erase(name);
              if (auto rewrite = model_rewrite(object, options_.pool)) rewrites_[name] = *std::move(rewrite);
            },
            [this](const std::string& name) { rewrites_.erase(name); }, [this] { notify_rules(); }));
}

void KubePool::notify_endpoints() {
  if (!pool_known_ || !pods_known_) return;
  std::vector<Endpoint> all;
  for (const auto& [name, pod] : pods_) {
    if (!selected_ || !selects(selected_->selector, pod.labels)) continue;
    for (Endpoint& endpoint : endpoints_of(pod, selected_->ports)) all.push_back(std::move(endpoint));
  }
  endpoints_(std::move(all));
}

void KubePool::notify_rules() {
  RequestRules rules{.objectives = objectives_};
  for (const auto& [name, rewrite] : rewrites_) rules.rewrites.push_back(rewrite);
  std::ranges::stable_sort(rules.rewrites, {}, &ModelRewrite::created);
  rules_(std::move(rules));
}

Result<KubePoolOptions> read_inference_pool(const json::object& object) {
  const json::value value = object;
  boost::system::error_code error;
  const json::value* labels = value.find_pointer("/spec/selector/matchLabels", error);
  const json::value* ports = value.find_pointer("/spec/targetPorts", error);
  KubePoolOptions options;
  if (!labels || !labels->is_object() || labels->get_object().empty())
    return invalid("spec.selector.matchLabels", "must be an object with at least one label");
  for (const auto& [key, label] : labels->get_object()) {
    if (!label.is_string())
      return invalid("spec.selector.matchLabels", "{} must be a string", std::string_view(key));
    options.selector[key] = label.get_string();
  }
  if (!ports || !ports->is_array() || ports->get_array().empty() || ports->get_array().size() > kPoolPortsMax)
    return invalid("spec.targetPorts", "must be a list of 1 to {} ports", kPoolPortsMax);
  for (const json::value& port : ports->get_array()) {
    const json::value* number = port.find_pointer("/number", error);
    if (!number || !number->is_int64() || number->get_int64() < 1 || number->get_int64() > 65535)
      return invalid("spec.targetPorts", "number must be from 1 to 65535");
    options.ports.push_back(static_cast<int>(number->get_int64()));
  }
  return options;
}

}  // namespace octavo::fleet
