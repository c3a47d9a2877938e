// The part of an EndpointPickerConfig that selects the profile of a request: which prompts and images go to
// separate prefill and encode endpoints, and which header names them.
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
  // One function for each type of plugin. Errors are stored in the parameters.
  void read_handler(Parameters& parameters);         // disagg-profile-handler
  void read_old_handler(Parameters& parameters);     // pd-profile-handler, for prefill alone
  void read_header_handler(Parameters& parameters);  // header-profile-handler
  void read_decider(const std::string& name, Parameters& parameters);  // prefix-based-pd-decider
  void always_prefill(const std::string& name) { deciders_[name] = {}; }
  void always_encode(const std::string& name) { encode_deciders_.insert(name); }

  // The profiles of the file by name. disagg-profile-handler needs the decode profile and, with a decider,
  // the prefill and encode profiles. header-profile-handler takes any. Without a handler there must be one
  // profile.
  Result<> choose_profiles(std::map<std::string, std::vector<StepConfig>, std::less<>> profiles,
                           PipelineConfig& pipeline) const;

  int primary_port() const { return primary_port_; }  // from the handler; 0 if not set

 private:
  bool handled_ = false;
  int primary_port_ = 0;
  std::optional<ProfilesByHeader> by_header_;
  std::string decode_ = "decode";
  std::string prefill_ = "prefill";
  std::string encode_ = "encode";
  std::string decider_;                                          // of prefill; "" if each prompt stays
  std::map<std::string, PrefillRule, std::less<>> deciders_ = {  // by the names of their plugins
      {"always-disagg-pd-decider", PrefillRule{}}};
  std::string encode_decider_;  // "": images are encoded where the prompt is computed
  std::set<std::string, std::less<>> encode_deciders_ = {"always-disagg-multimodal-decider"};
};

}  // namespace octavo::fleet
