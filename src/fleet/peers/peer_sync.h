// Exchanges requests in flight with other routers over ZeroMQ (PUB and SUB).
// Changes within 2 ms are sent together, and the loads of all workers once a second. So after a loss (a full
// queue, a broken connection), peers are correct within a second. A peer counts as idle after the end of its
// connection, or after 5 s without a message.
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
  // address at which this router publishes, such as "tcp://*:5600"; "": it only receives
  std::string endpoint = {};
  // "host:port" of peers; a host name means all its addresses, resolved every 10 s, which may include this
  // router
  std::vector<std::string> peers = {};
};

class PeerSync {
 public:
  // Callbacks on PeerSync's thread. changed_loads must be thread-safe.
  struct Owner {
    // Returns the changes since the last call. all: the loads of all workers.
    std::function<std::vector<WorkerLoad>(bool all)> changed_loads = {};
    std::function<void(const LoadMessage&)> heard = {};
    std::function<void(PeerId)> gone = {};
    std::function<void()> malformed = {};         // a message was invalid, and skipped
    std::function<void(int)> peers_changed = {};  // argument: the current number of peers
  };

  // Errors: the address is not available (field "router-sync"); an invalid address or too many peers (field
  // "router-peers").
  static Result<std::unique_ptr<PeerSync>> start(const PeerOptions& options, Owner owner);
  ~PeerSync();

  // Reports a change of loads. Thread-safe, and cheap.
  void changed();

 private:
  struct State;
  explicit PeerSync(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
