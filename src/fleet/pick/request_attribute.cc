#include "fleet/pick/request_attribute.h"

#include <cmath>

#include "ext_proc.pb.h"

namespace octavo::fleet {

void report_attributes(std::span<const RequestAttribute> attributes,
                       const std::optional<boost::json::object>& usage,
                       envoy::service::ext_proc::v3::ProcessingResponse& answer) {
  if (!usage) return;
  for (const RequestAttribute& attribute : attributes) {
    if (attribute.condition && !attribute.condition->truth(*usage).value_or(false)) continue;
    const double value = std::trunc(attribute.expression.number(*usage).value_or(0));
    if (value == 0 || !std::isfinite(value)) continue;
    auto& space =
        *(*answer.mutable_dynamic_metadata()->mutable_fields())[attribute.space].mutable_struct_value();
    (*space.mutable_fields())[attribute.name].set_number_value(value);
  }
}

}  // namespace octavo::fleet
