#include "fleet/pick/prefill_config.h"

#include <boost/json/object.hpp>
#include <limits>

#include "base/quoted_text.h"
#include "fleet/decide/parameters.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kTokensMax = std::int64_t{1} << 31;

}  // namespace

void PrefillConfig::read_decider(const std::string& name, Parameters& parameters) {
  PrefillRule rule;
  parameters.read("promptTokens", rule.prompt_tokens, 0, kTokensMax);
  parameters.read("nonCachedTokens", rule.new_tokens, 0, kTokensMax);
  if (rule.new_tokens == 0) rule.new_tokens = kNever;
  deciders_[name] = std::move(rule);
}

void PrefillConfig::read_handler(Parameters& parameters) {
  handled_ = true;
  std::string order = "decode-first";
  parameters.read("stageOrder", order);
  if (order != "decode-first")
    parameters.fail("stageOrder", "must be \"decode-first\", the only supported value");
  parameters.read_object("profiles", [this](Parameters& fields) {
    fields.read("decode", decode_);
    fields.read("prefill", prefill_);
    fields.read("encode", encode_);
  });
  parameters.read_object("deciders", [this](Parameters& fields) {
    fields.read("prefill", decider_);
    fields.read("encode", encode_decider_);
  });
  parameters.read("decodeProfile", decode_);
  parameters.read("prefillProfile", prefill_);
  parameters.read("encodeProfile", encode_);
  parameters.read("deciderPluginName", decider_);
  parameters.read("prefillDeciderPluginName", decider_);
  parameters.read("encodeDeciderPluginName", encode_decider_);
}

void PrefillConfig::read_old_handler(Parameters& parameters) {
  handled_ = true;
  decider_ = "prefix-based-pd-decider";
  std::string unused;
  std::int64_t port = 0;
  parameters.read("decodeProfile", decode_);
  parameters.read("prefillProfile", prefill_);
  parameters.read("deciderPluginName", decider_);
  for (const char* field : {"prefixPluginType", "prefixPluginName", "prefixMatchInfoProducerName"})
    parameters.read(field, unused);  // has no effect, because the decider uses all producers
  parameters.read("primaryPort", port, 0, 65535);
  primary_port_ = static_cast<int>(port);
}

void PrefillConfig::read_header_handler(Parameters& parameters) {
  ProfilesByHeader& by_header = by_header_.emplace();
  parameters.read("headerName", by_header.header);
  parameters.read("defaultProfile", by_header.unnamed);
  if (by_header.header.empty()) parameters.fail("headerName", "must be the name of a header");
}

Result<> PrefillConfig::choose_profiles(std::map<std::string, std::vector<StepConfig>, std::less<>> profiles,
                                        PipelineConfig& pipeline) const {
  constexpr std::string_view kField = "schedulingProfiles";
  if (handled_ && by_header_) return invalid("plugins", "must have at most one profile handler");
  if (by_header_ && profiles.size() > 1) {
    pipeline.by_header = by_header_;
    pipeline.by_header->profiles = std::move(profiles);
    return {};
  }
  if (!handled_) {
    if (profiles.size() != 1)
      return invalid(
          kField,
          "must have exactly one entry unless `plugins` has a profile handler that chooses among profiles");
    pipeline.steps = std::move(profiles.begin()->second);
    return {};
  }
  const auto profile = [&](const std::string& name) -> Result<std::vector<StepConfig>> {
    const auto found = profiles.find(name);
    if (found == profiles.end()) return invalid(kField, "the profile {} does not exist", quoted_text(name));
    return found->second;
  };
  TRY(pipeline.steps, profile(decode_));
  if (!encode_decider_.empty()) {
    if (!encode_deciders_.contains(encode_decider_))
      return invalid("plugins", "the encode decider {} does not exist", quoted_text(encode_decider_));
    TRY(pipeline.encode, profile(encode_));
  }
  if (decider_.empty()) return {};
  TRY(auto prefill, profile(prefill_));
  const auto rule = deciders_.find(decider_);
  if (rule == deciders_.end())
    return invalid("plugins", "the prefill decider {} does not exist", quoted_text(decider_));
  pipeline.prefill = rule->second;
  pipeline.prefill->steps = std::move(prefill);
  return {};
}

}  // namespace octavo::fleet
