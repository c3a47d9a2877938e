// Scales a fleet on this machine by starting servers and registering them with an `octavo route`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fleet/autoscale/connector.h"
#include "fleet/autoscale/owned_process.h"
#include "fleet/discover/registration.h"
#include "fleet/view/endpoint.h"
#include "http/url.h"

namespace octavo::fleet {

struct ProcessOptions {
  // command that starts a server on 127.0.0.1; {port} is replaced by the port
  std::string command = {};
  http::Url router = {};
  std::string api_key = {};
  Role role = Role::both;  // role with which the servers are registered
  int first_port = 0, last_port = 0;
  std::int64_t startup_us = 600'000'000;  // a server that is not ready after this time is killed
  // maximum time for the last requests of a server that was removed from the router
  std::int64_t drain_us = 1'800'000'000;
  std::int64_t restart_us = 5'000'000;
};

// Starts servers, and registers each server with the router when GET /health returns 200. Registers it
// again after the router has restarted. To remove a server, first removes it from the router, lets it
// finish its requests, and then sends SIGTERM. A server that hangs is killed.
class ProcessConnector final : public Connector {
 public:
  explicit ProcessConnector(ProcessOptions options) : options_(std::move(options)) {}

  // Never waits, because the router may start later than the first server.
  Result<int> existing(const FleetReading& fleet) override { return static_cast<int>(fleet.replicas.size()); }
  void tick(int replicas, std::int64_t now_us) override;
  bool end(std::int64_t now_us) override;

 private:
  enum class Phase : std::uint8_t {
    starting,
    serving,
    draining,  // removed from the router, but requests are still running
    ending,
    ended,  // the process is gone, and this tick forgets it
  };
  struct Server {
    int port;
    std::unique_ptr<ListEntry> entry;
    OwnedProcess process;
    Phase phase = Phase::starting;
    std::int64_t since_us = 0;  // start of the phase
    std::int64_t requested_us = 0;  // time of the last health request
    std::int64_t received_us = 0;   // serving: time of the last response to a health request
    int missed = 0;
    std::int64_t kept_us = 0;  // serving: time of the last check of the router's entry
    bool listed = true;        // serving: the last check of the router's entry has succeeded
    // in phase draining: start of the time without running requests; 0: requests are running
    std::int64_t quiet_us = 0;

    std::string url() const;
  };

  void look_after(Server& server, std::int64_t now_us);
  void when_serving(Server& server, std::int64_t now_us);
  void when_draining(Server& server, std::int64_t now_us);
  void add(std::int64_t now_us);
  void remove(std::int64_t now_us);
  void enter(Server& server, Phase phase, std::int64_t now_us);
  Server* newest(Phase phase);
  int free_port() const;  // returns 0 if no port is free

  const ProcessOptions options_;
  std::vector<Server> servers_;  // oldest first
  std::int64_t next_us_ = 0;
};

}  // namespace octavo::fleet
