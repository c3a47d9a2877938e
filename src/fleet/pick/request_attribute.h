// llm-d's request-attribute-reporter: numbers for the gateway, computed from the usage of an answer.
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
  std::optional<UsageExpression> condition = {};  // if it is false, nothing is reported
};

// Adds the attributes to the gateway's answer. tail: end of the answer's body. As in llm-d, only whole
// numbers other than 0 are reported.
void report_attributes(std::span<const RequestAttribute> attributes, std::string_view tail,
                       envoy::service::ext_proc::v3::ProcessingResponse& answer);

}  // namespace octavo::fleet
