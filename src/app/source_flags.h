// Flags of `octavo route` and `octavo pick` for endpoint lists that change at run time.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "fleet/discover/endpoint_source.h"
#include "fleet/discover/event_addresses.h"

namespace octavo {

struct SourceFlags {
  std::string etcd = {}, etcd_prefix = fleet::EtcdOptions().prefix;
  std::string file = {}, dns = {}, srv = {}, srv_server = {};
  int dns_interval_s = 10;
  fleet::EventPorts event_ports = {};
};

void add_source_flags(CLI::App& command, SourceFlags& flags);
// Only `octavo route` has these flags; `octavo pick` reads the values from its configuration.
void add_event_flags(CLI::App& command, SourceFlags& flags);

// Errors name the flag.
Result<std::vector<fleet::EndpointSourceOptions>> read_sources(const SourceFlags& flags);

}  // namespace octavo
