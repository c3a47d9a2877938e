#include "fleet/pick/gateway_metadata.h"

#include <string_view>

#include "ext_proc.pb.h"
#include "fleet/view/address_list.h"

namespace octavo::fleet {
namespace {

using envoy::service::ext_proc::v3::ProcessingRequest;

constexpr std::string_view kSubsetHint = "envoy.lb.subset_hint";
constexpr std::string_view kSubset = "x-gateway-destination-endpoint-subset";
constexpr std::string_view kServedNamespace = "envoy.lb";
constexpr std::string_view kServed = "x-gateway-destination-endpoint-served";

const auto* find_field(const ProcessingRequest& message, std::string_view space, std::string_view name) {
  const auto& spaces = message.metadata_context().filter_metadata();
  const auto found = spaces.find(std::string(space));
  using Value = std::remove_cvref_t<decltype(found->second.fields().at(""))>;
  if (found == spaces.end()) return static_cast<const Value*>(nullptr);
  const auto field = found->second.fields().find(std::string(name));
  return field == found->second.fields().end() ? nullptr : &field->second;
}

}  // namespace

Subset read_subset(const ProcessingRequest& message) {
  const auto* hint = find_field(message, kSubsetHint, kSubset);
  if (!hint) return std::nullopt;
  std::vector<std::string> addresses = read_address_list(hint->string_value());
  for (const auto& value : hint->list_value().values())
    for (std::string& item : read_address_list(value.string_value())) addresses.push_back(std::move(item));
  return addresses;
}

std::optional<std::string> read_served(const ProcessingRequest& message) {
  const auto* served = find_field(message, kServedNamespace, kServed);
  return served && !served->string_value().empty() ? std::optional(served->string_value()) : std::nullopt;
}

}  // namespace octavo::fleet
