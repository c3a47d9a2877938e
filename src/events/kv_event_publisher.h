// Publishes the events of the prefix cache over ZeroMQ, like vLLM's ZmqEventPublisher. Two sockets speak
// this protocol:
//
//   PUB     [topic, sequence number, batch]      numbers start at 0; 8 bytes, big-endian
//   ROUTER  a client sends ["", first number] and gets ["", topic, number, batch] for each kept batch,
//           then ["", "", -1, ""].
//
// A client with a REQ socket gets these messages without the topic, because vLLM's clients before 0.26 used
// REQ. Later clients of vLLM and llm-d use DEALER.
//
// A batch usually contains the events of one engine step, and of several steps if the publisher is slower
// than the engine.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "events/kv_event_options.h"
#include "events/kv_event_wire.h"
#include "kv/kv_cache.h"

namespace octavo {

class KvEventPublisher {
 public:
  // Binds the endpoints and starts the threads. `rank` is the data-parallel index of the engine and is
  // added to the ports, see rank_endpoint(). Returns an error if an endpoint cannot be bound.
  static Result<std::unique_ptr<KvEventPublisher>> start(const KvEventOptions& options, const KvCache& cache,
                                                         int rank);
  // Publishes all events that are still in the log before it returns.
  ~KvEventPublisher();

  // Only one thread may write to the log. Events are published after KvEventLog::flush().
  KvEventLog& log() { return log_; }

  // Sets the names that events report for blocks with this `extra` hash. The publisher remembers the latest
  // 65,536 hashes. For a hash without names, events report the hash itself. Thread-safe.
  void name(const Hash128& extra, KvContentNames names);

  // Returns the endpoint with the port that was actually bound.
  const std::string& endpoint() const { return endpoint_; }
  bool bound() const { return bound_; }  // false: the publisher connects to endpoint()
  const std::string& replay_endpoint() const { return replay_endpoint_; }

 private:
  struct Sockets;
  struct Kept {
    std::uint64_t number;
    std::string batch;
  };

  KvEventPublisher(const KvEventOptions& options, const KvCache& cache, int rank);

  void publish();
  void answer_replays();

  const KvEventOptions options_;
  KvEventLog log_;
  KvEventBatch batch_;
  const int rank_;
  std::unique_ptr<Sockets> sockets_;
  std::string endpoint_, replay_endpoint_;
  bool bound_ = true;
  std::mutex mutex_;
  std::deque<Kept> kept_;
  std::mutex names_mutex_;  // guards names_ and named_
  std::map<Hash128, KvContentNames> names_;
  std::deque<Hash128> named_;  // keys of names_, oldest first
  std::thread publishing_, answering_;
};

}  // namespace octavo
