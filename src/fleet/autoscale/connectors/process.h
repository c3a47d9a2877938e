// Scales by starting servers on this machine and registering them with an `octavo route`.
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
  std::string command = {};  // command that starts a server on 127.0.0.1; each {port} in it is replaced
  http::Url router = {};     // router with which servers are registered when they are ready
  std::string api_key = {};  // sent to servers and the router
  Role role = Role::both;    // role of the servers in the router's list
  int first_port = 0, last_port = 0;
  std::int64_t startup_us = 600'000'000;  // time within which a server must be ready
  std::int64_t drain_us = 1'800'000'000;  // time for a server's last requests
  std::int64_t restart_us = 5'000'000;    // pause after a server has ended by itself
};

// Starts a server, and registers it when GET /health returns 200, again when the router has restarted. A
// surplus server is first removed from the router; it finishes its requests, then gets SIGTERM. A server that
// stops answering is killed.
class ProcessConnector final : public Connector {
 public:
  explicit ProcessConnector(ProcessOptions options) : options_(std::move(options)) {}

  void tick(int replicas, std::int64_t now_us) override;
  bool end(std::int64_t now_us) override;

 private:
  enum class Phase : std::uint8_t {
    starting,
    serving,   // registered with the router
    draining,  // removed from the router; requests are still running
    ending,    // SIGTERM was sent
  };
  struct Server {
    int port;
    std::unique_ptr<ListEntry> entry;  // its entry in the router's list
    OwnedProcess process;
    Phase phase = Phase::starting;
    std::int64_t since_us = 0;  // start of the phase
    std::int64_t asked_us = 0;  // time of the last health request
    std::int64_t heard_us = 0;  // serving: time of the last answer to a health request
    int missed = 0;             // serving: number of unanswered health requests in a row
    std::int64_t kept_us = 0;   // serving: time of the last check of the entry
    bool listed = true;         // serving: the last check has succeeded
    std::int64_t quiet_us = 0;  // draining: time since which no request is running; 0: requests are running

    std::string url() const;
  };

  void look_after(Server& server, std::int64_t now_us);
  void when_serving(Server& server, std::int64_t now_us);
  void when_draining(Server& server, std::int64_t now_us);
  void add(std::int64_t now_us);
  void remove(std::int64_t now_us);
  void enter(Server& server, Phase phase, std::int64_t now_us);
  Server* newest(Phase phase);
  int free_port() const;  // 0 if no port is free

  const ProcessOptions options_;
  std::vector<Server> servers_;  // oldest first
  std::int64_t next_us_ = 0;     // earliest time to start or remove a server
};

}  // namespace octavo::fleet
