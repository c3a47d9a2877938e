// A connector is a protocol for disaggregated prefill: it sends one request to a prefill engine and a
// decode engine. Each connector has one small file in connectors/, and one row in connector.cc.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <span>
#include <string_view>

namespace octavo::fleet {

class SplitRequest;

struct Connector {
  std::string_view name;
  std::string_view summary;
  // Handles a request until its end. The caller has checked that the prefill engine is allowed and that the
  // request has a prompt. `prompt` is the result of prefill_request().
  void (*run)(const std::shared_ptr<SplitRequest>& split, boost::json::object prompt);
};

std::span<const Connector> connectors();
const Connector* find_connector(std::string_view name);  // null: unknown name

// One function for each row, defined in the connector's file.
void run_mooncake(const std::shared_ptr<SplitRequest>& split, boost::json::object prompt);
void run_nixl(const std::shared_ptr<SplitRequest>& split, boost::json::object prompt);
void run_offloading(const std::shared_ptr<SplitRequest>& split, boost::json::object prompt);
void run_sglang(const std::shared_ptr<SplitRequest>& split, boost::json::object prompt);
void run_shared_storage(const std::shared_ptr<SplitRequest>& split, boost::json::object prompt);

}  // namespace octavo::fleet
