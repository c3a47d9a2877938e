// Flags with which `octavo serve` registers at routers and pickers.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/kv_event_options.h"
#include "fleet/discover/registration.h"

namespace octavo {

struct ServeCommand;
struct Serving;

struct RegistrationFlags {
  std::string etcd = {}, etcd_prefix = fleet::EtcdOptions().prefix;
  std::vector<std::string> routers = {};
  std::string host = {};
  std::string role = "auto";
  int lease_s = fleet::RegistrationOptions().lease_s;
};

void add_registration_flags(CLI::App& command, RegistrationFlags& flags);

struct RegistrationPlan {
  fleet::RegistrationOptions options = {};
  fleet::Endpoint worker = {};  // describes this server; its URL has only the scheme
  KvEventOptions events = {};
};

// Returns nullopt if the flags name no list of endpoints. Errors name the flag.
Result<std::optional<RegistrationPlan>> plan_registration(const ServeCommand& command);

std::unique_ptr<fleet::Registration> start_registration(RegistrationPlan plan, const Serving& serving);

}  // namespace octavo
