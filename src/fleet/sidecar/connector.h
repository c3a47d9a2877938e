// Protocols by which a prefill and a decode engine find each other. A connector is one small file in
// connectors/ and one row in connector.cc.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <span>
#include <string_view>

namespace octavo::fleet {

class TwoLegs;

struct Connector {
  std::string_view name;  // llm-d's
  std::string_view summary;
  // Runs the request to its end. The prefiller is known and allowed, and the route continues a prompt.
  // prompt: its first_leg().
  void (*run)(const std::shared_ptr<TwoLegs>& legs, boost::json::object prompt);
};

std::span<const Connector> connectors();
const Connector* find_connector(std::string_view name);  // null if unknown

// One function per row, each in its connector's file.
void run_mooncake(const std::shared_ptr<TwoLegs>& legs, boost::json::object prompt);
void run_nixl(const std::shared_ptr<TwoLegs>& legs, boost::json::object prompt);
void run_offloading(const std::shared_ptr<TwoLegs>& legs, boost::json::object prompt);
void run_sglang(const std::shared_ptr<TwoLegs>& legs, boost::json::object prompt);
void run_shared_storage(const std::shared_ptr<TwoLegs>& legs, boost::json::object prompt);

}  // namespace octavo::fleet
