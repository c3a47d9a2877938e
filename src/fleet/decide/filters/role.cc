// decode-filter, prefill-filter and encode-filter: each keeps endpoints whose label llm-d.ai/role contains
// the role. Endpoints without the label count as decode endpoints, as in older versions of llm-d. May
// remove all endpoints.
#include <algorithm>
#include <array>

#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kRoleLabel = "llm-d.ai/role";

template <std::size_t N>
class RoleFilter : public Filter {
 public:
  RoleFilter(const std::array<std::string_view, N>& roles, bool unlabelled)
      : roles_(roles), unlabelled_(unlabelled) {}

  void filter(Cycle&, Candidates& candidates) override {
    std::erase_if(candidates, [&](const Member* member) {
      const auto& labels = member->endpoint->labels;
      const auto role = labels.find(std::string(kRoleLabel));
      if (role == labels.end()) return !unlabelled_;
      return std::ranges::find(roles_, role->second) == roles_.end();
    });
  }

 private:
  const std::array<std::string_view, N> roles_;
  const bool unlabelled_;
};

constexpr std::array<std::string_view, 4> kDecode{"decode", "prefill-decode", "encode-prefill-decode",
                                                  "both"};
constexpr std::array<std::string_view, 5> kPrefill{"prefill", "encode-prefill", "prefill-decode",
                                                   "encode-prefill-decode", "both"};
constexpr std::array<std::string_view, 3> kEncode{"encode", "encode-prefill", "encode-prefill-decode"};

}  // namespace

std::unique_ptr<Plugin> make_decode_filter(Parameters&, Plugins&) {
  return std::make_unique<RoleFilter<kDecode.size()>>(kDecode, true);
}
std::unique_ptr<Plugin> make_prefill_filter(Parameters&, Plugins&) {
  return std::make_unique<RoleFilter<kPrefill.size()>>(kPrefill, false);
}
std::unique_ptr<Plugin> make_encode_filter(Parameters&, Plugins&) {
  return std::make_unique<RoleFilter<kEncode.size()>>(kEncode, false);
}

}  // namespace octavo::fleet
