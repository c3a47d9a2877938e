// Registers a worker in the lists of routers and in etcd. Restores entries that are lost, and removes the
// entries when the worker stops.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet/discover/etcd_pool.h"
#include "fleet/view/endpoint.h"
#include "http/url.h"

namespace octavo::fleet {

struct RegistrationOptions {
  std::optional<EtcdOptions> etcd = {};
  std::vector<http::Url> routers = {};
  // the worker's host name or address for other machines; "": the address of this machine's network interface
  // towards the server that keeps the list
  std::string host = {};
  std::string api_key = {};  // API key for the routers; "": no key
  int lease_s = 10;          // seconds after the end of the process until etcd deletes the key
};

// An entry in one list. Must be called by one thread at a time.
class ListEntry {
 public:
  virtual ~ListEntry() = default;
  virtual std::string name() const = 0;
  // Adds the entry if the list does not contain it. Returns an error if the list refuses the entry.
  virtual Result<> keep() = 0;
  virtual Result<> remove() = 0;
};

std::unique_ptr<ListEntry> etcd_entry(const RegistrationOptions& options, Endpoint worker);
std::unique_ptr<ListEntry> router_entry(const RegistrationOptions& options, const http::Url& router,
                                        Endpoint worker);

class Registration {
 public:
  // Replaces a host "*" in the worker's addresses by the worker's host, for each list separately.
  Registration(const RegistrationOptions& options, const Endpoint& worker);
  ~Registration();  // tries once to remove each entry

 private:
  struct Kept;
  std::vector<std::unique_ptr<Kept>> kept_;
};

// Returns the address of the network interface towards a server. Returns an `io` error if there is no
// route, or if the name is unknown.
Result<std::string> host_towards(const http::Url& url);

}  // namespace octavo::fleet
