// Registers a worker in the lists that routers and pickers follow. Keeps its entries, and removes them at the
// end.
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
  std::vector<http::Url> routers = {};  // routers that get POST /workers
  std::string host = {};     // host name or address at which others reach the worker; "": the address of the
                             // network interface towards the list
  std::string api_key = {};  // API key for the routers; "": none
  int lease_s = 10;          // seconds until the worker's key in etcd expires after its process has ended
};

// An entry in one list. Calls do not overlap.
class ListEntry {
 public:
  virtual ~ListEntry() = default;
  virtual std::string name() const = 0;  // name of the list, for the log
  // Makes the entry if it is missing. Errors: the list refuses the entry.
  virtual Result<> keep() = 0;
  virtual Result<> remove() = 0;
};

std::unique_ptr<ListEntry> etcd_entry(const RegistrationOptions& options, Endpoint worker);
std::unique_ptr<ListEntry> router_entry(const RegistrationOptions& options, const http::Url& router,
                                        Endpoint worker);

class Registration {
 public:
  // worker: its addresses have the host "*", which is replaced for each list by the host at which the worker
  // is reached.
  Registration(const RegistrationOptions& options, const Endpoint& worker);
  ~Registration();  // tries once to remove each entry

 private:
  struct Kept;
  std::vector<std::unique_ptr<Kept>> kept_;
};

// The address of this machine on the network interface towards a server. Errors: io, no route or unknown
// name.
Result<std::string> host_towards(const http::Url& url);

}  // namespace octavo::fleet
