// Numbers that the picker reports to the gateway with an answer, computed from the answer's usage: llm-d's
// request-attribute-reporter.
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
  std::optional<UsageExpression> condition = {};  // if false, nothing is reported
};

// tail: end of the answer's body. As in llm-d, only whole numbers other than 0 are reported.
void report_attributes(std::span<const RequestAttribute> attributes, std::string_view tail,
                       envoy::service::ext_proc::v3::ProcessingResponse& answer);

}  // namespace octavo::fleet
