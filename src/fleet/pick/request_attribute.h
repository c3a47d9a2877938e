// llm-d's request-attribute-reporter: computes numbers from the usage of a response, and reports them to
// the gateway.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "fleet/pick/usage_expression.h"

namespace envoy::service::ext_proc::v3 {
class ProcessingResponse;
}

namespace octavo::fleet {

struct RequestAttribute {
  std::string space = "envoy.lb";  // namespace of the dynamic metadata
  std::string name = {};
  UsageExpression expression;
  std::optional<UsageExpression> condition = {};
};

// Adds the attributes to the gateway's response. As in llm-d, only integers other than 0 are reported.
void report_attributes(std::span<const RequestAttribute> attributes,
                       const std::optional<boost::json::object>& usage,
                       envoy::service::ext_proc::v3::ProcessingResponse& answer);

}  // namespace octavo::fleet
