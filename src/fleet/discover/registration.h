// Registers a worker in the lists of routers and pickers. Restores entries that are lost, and removes them at
// the end.
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
  // host name or address of the worker for other machines; "": address of the network interface towards the
  // list
  std::string host = {};
  std::string api_key = {};  // API key of the routers; "": no key
  int lease_s = 10;          // seconds after the end of the process until etcd deletes its key
};

// An entry in one list. One thread at a time calls it.
class ListEntry {
 public:
  virtual ~ListEntry() = default;
  virtual std::string name() const = 0;  // name of the list in the log
  // Adds the entry if the list does not have it. Errors: the list refuses the entry.
  virtual Result<> keep() = 0;
  virtual Result<> remove() = 0;
};

std::unique_ptr<ListEntry> etcd_entry(const RegistrationOptions& options, Endpoint worker);
std::unique_ptr<ListEntry> router_entry(const RegistrationOptions& options, const http::Url& router,
                                        Endpoint worker);

class Registration {
 public:
  // worker: the host "*" in its addresses is replaced, for each list, by the worker's host.
  Registration(const RegistrationOptions& options, const Endpoint& worker);
  ~Registration();  // tries once to remove each entry

 private:
  struct Kept;
  std::vector<std::unique_ptr<Kept>> kept_;
};

// Returns the address of the network interface towards a server. Errors: io, no route or unknown name.
Result<std::string> host_towards(const http::Url& url);

}  // namespace octavo::fleet
