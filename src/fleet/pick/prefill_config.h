// Reads how an EndpointPickerConfig selects the profiles of a request: when separate endpoints prefill or
// encode, or which header names the profile.
#pragma once

#include <boost/json/fwd.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/decide/pipeline.h"

namespace octavo::fleet {

class Parameters;

class PrefillConfig {
 public:
  // Each function reads the parameters of the plugin type that its comment names, and adds errors to them.
  void read_handler(Parameters& parameters);         // disagg-profile-handler
  void read_old_handler(Parameters& parameters);     // pd-profile-handler, without encoding
  void read_header_handler(Parameters& parameters);  // header-profile-handler
  void read_decider(const std::string& name, Parameters& parameters);  // prefix-based-pd-decider
  void always_prefill(const std::string& name) { deciders_[name] = {}; }
  void always_encode(const std::string& name) { encode_deciders_.insert(name); }

  // Puts the profiles that the handler names into `pipeline`. disagg-profile-handler needs a decode
  // profile, and a prefill or encode profile for each decider. header-profile-handler accepts any profiles.
  // Without a handler, there must be exactly one profile.
  Result<> choose_profiles(std::map<std::string, std::vector<StepConfig>, std::less<>> profiles,
                           PipelineConfig& pipeline) const;

  // primary port from the handler's parameters; 0: not set
  int primary_port() const { return primary_port_; }

 private:
  bool handled_ = false;
  int primary_port_ = 0;
  std::optional<ProfilesByHeader> by_header_;
  std::string decode_ = "decode";
  std::string prefill_ = "prefill";
  std::string encode_ = "encode";
  // name of the decider for prefill; "": decode endpoints compute all prompts
  std::string decider_;
  std::map<std::string, PrefillRule, std::less<>> deciders_ = {  // by plugin name
      {"always-disagg-pd-decider", PrefillRule{}}};
  // name of the decider for encoding; "": the endpoint that computes the prompt also encodes images
  std::string encode_decider_;
  std::set<std::string, std::less<>> encode_deciders_ = {"always-disagg-multimodal-decider"};
};

}  // namespace octavo::fleet
