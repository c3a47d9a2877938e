#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "fleet/plan/capacity.h"
#include "text/tokenizer_config.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kPlanBytesMax = 64 << 20;

}  // namespace

Result<CapacityTable> read_capacity(const std::string& path) {
  const auto text = read_text_file(path, kPlanBytesMax);
  if (!text) return field_failure("capacity", text.error().code, "{}", text.error().message);
  boost::system::error_code wrong;
  const boost::json::value plan = boost::json::parse(*text, wrong);
  const boost::json::value* listed = wrong ? nullptr : plan.find_pointer("/scaling/capacity", wrong);
  if (listed == nullptr || !listed->is_array() || listed->get_array().empty())
    return invalid("capacity",
                   "{} contains no capacities: write the file with octavo plan --window --output-json", path);
  std::vector<Capacity> rows;
  for (const boost::json::value& entry : listed->get_array()) {
    const boost::json::object* row = entry.if_object();
    const auto number = [&](const char* name) {
      const boost::json::value* value = row != nullptr ? row->if_contains(name) : nullptr;
      return value != nullptr && value->is_number() ? value->to_number<double>() : -1;
    };
    const double replicas = number("replicas"), load = number("tokens_per_second");
    if (!(replicas >= 1 && replicas <= kEndpointsMax && load >= 0) ||
        (!rows.empty() && replicas <= rows.back().replicas))
      return invalid("capacity",
                     "{}: scaling.capacity[{}] must have more replicas than the one before, and "
                     "tokens_per_second from 0",
                     path, rows.size());
    rows.push_back({static_cast<int>(replicas), load});
  }
  if (rows.back().load == 0)
    return invalid("capacity", "{}: all capacities are 0, so no fleet could serve any load", path);
  return CapacityTable(std::move(rows));
}

}  // namespace octavo::fleet
