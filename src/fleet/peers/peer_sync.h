// Tells other routers what this one has in flight, and hears the same of them, over ZeroMQ (PUB and SUB).
//
// Changes are told when they happen, those of 2 ms together; everything is told once a second. So whatever is
// lost (a queue is full, a connection breaks) is made good within a second. A peer whose connection ends, or
// that has said nothing for 5 s, has nothing in flight any more.
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
    // What has changed since the last call; of all workers where `all`.
    std::function<std::vector<WorkerLoad>(bool all)> changed_loads = {};
    std::function<void(const LoadMessage&)> heard = {};
    std::function<void(PeerId)> gone = {};
    std::function<void()> malformed = {};          // a message that was passed over
    std::function<void(int)> peers_changed = {};   // how many there are now
  };

  // Errors: an address that cannot be listened at, on "router-sync"; one that is none, or too many, on
  // "router-peers".
  static Result<std::unique_ptr<PeerSync>> start(const PeerOptions& options, Owner owner);
  ~PeerSync();

  // There is something to tell. Any thread; cheap.
  void changed();

 private:
  struct State;
  explicit PeerSync(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
