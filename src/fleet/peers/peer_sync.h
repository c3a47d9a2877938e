// Exchanges requests in flight with other routers over ZeroMQ (PUB and SUB).
//
// Changes within 2 ms are sent together, and all loads once a second. So after a loss (a full queue, a broken
// connection) peers are correct again within a second. A peer whose connection ends, or that is silent for 5
// s, counts as idle.
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
  std::string endpoint = {};             // "tcp://*:5600": where this router tells; "": nowhere
  std::vector<std::string> peers = {};   // each "host:port": all addresses of a name, asked for every 10 s;
                                         // this router itself may be among them
};

class PeerSync {
 public:
  // On the thread of PeerSync, but `changed_loads` of its owner's book, which may be in use on others.
  struct Owner {
    // Changes since the last call; `all`: the loads of all workers.
    std::function<std::vector<WorkerLoad>(bool all)> changed_loads = {};
    std::function<void(const LoadMessage&)> heard = {};
    std::function<void(PeerId)> gone = {};
    std::function<void()> malformed = {};          // a message that was passed over
    std::function<void(int)> peers_changed = {};   // how many there are now
  };

  // Errors: "router-sync": cannot listen at the address; "router-peers": an invalid address, or too many.
  static Result<std::unique_ptr<PeerSync>> start(const PeerOptions& options, Owner owner);
  ~PeerSync();

  // Loads have changed. Any thread; cheap.
  void changed();

 private:
  struct State;
  explicit PeerSync(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
