// header-based-testing-filter: the endpoints that the request's header test-epp-endpoint-selection names, by
// address or by address and port, for conformance tests of gateways.
#include <algorithm>

#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kHeader = "test-epp-endpoint-selection";

class HeaderBasedTestingFilter : public Filter {
 public:
  void filter(Cycle& cycle, Candidates& candidates) override {
    const auto wanted = cycle.request.header(kHeader);
    if (!wanted || wanted->empty()) return;
    std::erase_if(candidates, [&](const Member* member) { return !named(*wanted, member->endpoint->name); });
  }

 private:
  static bool named(std::string_view list, std::string_view endpoint) {
    while (!list.empty()) {
      std::string_view item = list.substr(0, list.find(','));
      list.remove_prefix(std::min(item.size() + 1, list.size()));
      while (item.starts_with(' ')) item.remove_prefix(1);
      while (item.ends_with(' ')) item.remove_suffix(1);
      const bool whole = item == endpoint;
      if (whole || (endpoint.starts_with(item) && !item.empty() &&
                    endpoint.substr(item.size()).starts_with(':') && endpoint.rfind(':') == item.size()))
        return true;
    }
    return false;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_header_based_testing_filter(Parameters&, Plugins&) {
  return std::make_unique<HeaderBasedTestingFilter>();
}

}  // namespace octavo::fleet
