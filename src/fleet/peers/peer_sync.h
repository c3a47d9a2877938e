// Exchanges requests in flight with other routers over ZeroMQ (PUB and SUB).
//
// Changes within 2 ms are sent together, and all loads once a second. So after a loss (a full queue, a broken
// connection) peers are correct within a second. A peer counts as idle if its connection ends or it sends
// nothing for 5 s.
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
  std::string endpoint = {};            // address at which this router publishes, such as "tcp://*:5600";
                                        // "": it does not publish
  std::vector<std::string> peers = {};  // each is "host:port" and means all addresses of the name, resolved
                                        // every 10 s; this router may be among them
};

class PeerSync {
 public:
  // Callbacks on PeerSync's thread. changed_loads must be safe, since other threads use the owner's data.
  struct Owner {
    // Returns changes since the last call. all: returns the loads of all workers.
    std::function<std::vector<WorkerLoad>(bool all)> changed_loads = {};
    std::function<void(const LoadMessage&)> heard = {};
    std::function<void(PeerId)> gone = {};
    std::function<void()> malformed = {};         // called when a message was invalid and skipped
    std::function<void(int)> peers_changed = {};  // called with the current number of peers
  };

  // Errors: "router-sync": cannot listen at the address; "router-peers": an invalid address, or too many
  // peers.
  static Result<std::unique_ptr<PeerSync>> start(const PeerOptions& options, Owner owner);
  ~PeerSync();

  // Reports that loads have changed. Safe from any thread; cheap.
  void changed();

 private:
  struct State;
  explicit PeerSync(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
