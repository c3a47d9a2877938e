// Enters a worker in the lists that routers and pickers follow, keeps the entries, and removes them at the
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
  std::vector<http::Url> routers = {};  // whose POST /workers takes it
  std::string host = {};     // under which others reach the worker; "": of the interface towards the list
  std::string api_key = {};  // for the routers; "": none
  int lease_s = 10;          // after this time without the worker its key in etcd goes
};

// An entry in one list. Calls are serial.
class ListEntry {
 public:
  virtual ~ListEntry() = default;
  virtual std::string name() const = 0;  // of the list, for the log
  // Makes the entry if it is missing. Errors: the list does not take it.
  virtual Result<> keep() = 0;
  virtual Result<> remove() = 0;
};

std::unique_ptr<ListEntry> etcd_entry(const RegistrationOptions& options, Endpoint worker);
std::unique_ptr<ListEntry> router_entry(const RegistrationOptions& options, const http::Url& router,
                                        Endpoint worker);

class Registration {
 public:
  // worker: its addresses have "*" as the host; each list gets the host by which it reaches the worker.
  Registration(const RegistrationOptions& options, const Endpoint& worker);
  ~Registration();  // removes the entries, one try each

 private:
  struct Kept;
  std::vector<std::unique_ptr<Kept>> kept_;
};

// The address of this machine on the interface towards a server. Errors: io, no route or no such name.
Result<std::string> host_towards(const http::Url& url);

}  // namespace octavo::fleet
