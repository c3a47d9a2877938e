// llm-d's request-attribute-reporter: computes numbers from the usage of a response, and reports them to
// the gateway.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

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

// Adds the attributes to the gateway's response. `tail` is the end of the response body. As in llm-d, only
// integers other than 0 are reported.
void report_attributes(std::span<const RequestAttribute> attributes, std::string_view tail,
                       envoy::service::ext_proc::v3::ProcessingResponse& answer);

}  // namespace octavo::fleet
