// The LoRA adapters that an engine knows by name, and those of them that are in memory.
//
// A folder is read on a thread of its own; its matrices then go to the device a few between two steps, so
// that loading holds up nobody. When all places are taken, the adapter that was used longest ago, and that no
// answer needs, leaves its place; it is read again when a request wants it. One is read at a time: what waits
// for a place holds no more memory than that.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/execute/executor.h"
#include "request/adapter_source.h"

namespace octavo {

class AdapterTable {
 public:
  // places: adapters in memory at a time. wake: called on the reading thread when advance() has something to
  // do.
  AdapterTable(AdapterSlots* slots, int places, std::function<void()> wake);
  // Whoever still waits for an adapter is told that the engine stops.
  ~AdapterTable();

  // All below: on the engine's thread.

  // An adapter of that name is replaced; answers that have the old one keep it.
  void load(AdapterSource source, AdapterDone done);
  // Answers that have it keep it. Error: there is none of that name.
  void unload(const std::string& name, const AdapterDone& done);

  struct Use {
    int place = -1;
    Hash128 digest;  // of its files
  };
  // For an answer. nullopt: it is being loaded, ask again when advance() says so. Errors: there is none of
  // that name, or it could not be read.
  Result<std::optional<Use>> use(const std::string& name);

  // Goes on with what is being loaded. is_used(place): whether an answer has that adapter. True: adapters
  // have become ready, or have failed.
  bool advance(const std::function<bool(int place)>& is_used);
  // Matrices are on their way to the device.
  bool preparing() const;

 private:
  enum class State : std::uint8_t { known, queued, reading, read, ready, failed };
  struct Entry {
    AdapterSource source;
    State state = State::known;
    bool leaving = false;  // unloaded or replaced
    int place = -1;
    std::uint64_t last_used = 0;
    AdapterFile file;
    std::size_t prepared = 0;  // of the file's changes
    Error error{};
    std::vector<AdapterDone> waiting;
  };

  Entry* find(const std::string& name);
  void queue(Entry& entry);
  void tell(Entry& entry, const Result<>& result);
  void fail(Entry& entry, Error error);
  bool take_read();
  bool prepare(Entry& entry);
  void find_place(Entry& entry, const std::function<bool(int)>& is_used);
  void leave_place(Entry& entry);
  void read_next();
  void run();

  AdapterSlots* const slots_;  // null only without places
  const std::function<void()> wake_;
  std::vector<Entry*> places_;  // null: free
  std::list<Entry> entries_;
  std::uint64_t uses_ = 0;

  std::mutex mutex_;  // guards all below
  std::condition_variable came_;
  std::optional<std::string> to_read_;
  std::optional<Result<AdapterFile>> read_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo
