// header-based-testing-filter: keeps the endpoints whose addresses (with or without port) are in the
// request header test-epp-endpoint-selection. Conformance tests of gateways use it.
#include <algorithm>

#include "fleet/decide/plugin_table.h"
#include "fleet/view/address_list.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kHeader = "test-epp-endpoint-selection";

class HeaderBasedTestingFilter : public Filter {
 public:
  void filter(Cycle& cycle, Candidates& candidates) override {
    const auto wanted = cycle.request.header(kHeader);
    if (!wanted || wanted->empty()) return;
    const std::vector<std::string> addresses = read_address_list(*wanted);
    std::erase_if(candidates, [&](const Member* member) {
      return std::ranges::none_of(addresses,
                                  [&](const auto& item) { return address_names(item, member->endpoint->name); });
    });
  }
};

}  // namespace

std::unique_ptr<Plugin> make_header_based_testing_filter(Parameters&, Plugins&) {
  return std::make_unique<HeaderBasedTestingFilter>();
}

}  // namespace octavo::fleet
