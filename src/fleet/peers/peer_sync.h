// Routers in front of the same workers report their requests in flight to each other, over ZeroMQ (PUB and
// SUB).
// Changes within 2 ms are sent in one message. Once a second, a message has the loads of all workers, so a
// lost message is corrected within a second. A peer's load counts as 0 when its connection ends, or if no
// message arrives for 5 s.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "fleet/peers/load_message.h"

namespace octavo::fleet {

struct PeerOptions {
  // address at which this router publishes, such as "tcp://*:5600"; "": the router only receives
  std::string endpoint = {};
  // "host:port" of each peer. The router connects to all addresses of a host name, which may include
  // this router. Names are resolved every 10 s.
  std::vector<std::string> peers = {};
};

class PeerSync {
 public:
  // Callbacks. PeerSync calls them on its thread, so changed_loads must be thread-safe.
  struct Owner {
    // Returns the loads that have changed since the last call. If `all` is set, returns the loads of all
    // workers.
    std::function<std::vector<WorkerLoad>(bool all)> changed_loads = {};
    std::function<void(const LoadMessage&)> received = {};
    std::function<void(PeerId)> removed = {};
    std::function<void()> malformed = {};
    std::function<void(int)> peers_changed = {};  // the argument is the new number of peers
  };

  // Returns an error on "router-sync" if the address is not available. Returns an error on "router-peers"
  // if an address is invalid or there are too many peers.
  static Result<std::unique_ptr<PeerSync>> start(const PeerOptions& options, Owner owner);
  ~PeerSync();

  // Must be called after a change of loads. Thread-safe and cheap.
  void changed();

 private:
  struct State;
  explicit PeerSync(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
