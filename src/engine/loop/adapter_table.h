// The LoRA adapters of an engine by name, and their assignment to device slots.
//
// A separate thread reads the folder of an adapter. Between steps, the engine thread copies a few matrices
// of the adapter to the device, so that loading delays no request. If all slots are in use, the least
// recently used adapter that no running answer uses is evicted; the next request for it loads it again.
// Adapters are read one at a time, which limits the host memory of adapters that wait for a slot.
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
  // `slot_count` is the number of slots. `wake` is called on the reading thread when advance() has work.
  AdapterTable(AdapterSlots* slots, int slot_count, std::function<void()> wake);
  // Completes pending loads with the error that the engine has stopped.
  ~AdapterTable();

  // The functions below must be called on the engine thread.

  // Adds an adapter, or replaces the adapter with the same name. Running answers keep the old adapter.
  void load(AdapterSource source, AdapterDone done);
  // Removes the name. Running answers keep the adapter. Returns an error if the name is unknown.
  void unload(const std::string& name, const AdapterDone& done);

  struct Use {
    int slot = -1;
    Hash128 digest;
  };
  // Returns the adapter for a new answer. Returns nullopt while the adapter is loading; call again when
  // advance() has returned true. Returns an error if the name is unknown or the adapter cannot be read.
  Result<std::optional<Use>> use(const std::string& name);

  // Continues loading. is_used(slot) returns whether a running answer uses the adapter in the slot. Returns
  // true if an adapter became ready or failed.
  bool advance(const std::function<bool(int slot)>& is_used);
  bool preparing() const;

 private:
  enum class State : std::uint8_t { known, queued, reading, read, ready, failed };
  struct Entry {
    AdapterSource source;
    State state = State::known;
    bool leaving = false;  // unloaded or replaced, but answers may still use it
    int slot = -1;
    std::uint64_t last_used = 0;
    AdapterFile file;
    std::size_t prepared = 0;
    Error error{};
    std::vector<AdapterDone> waiting;
  };

  Entry* find(const std::string& name);
  void queue(Entry& entry);
  void complete(Entry& entry, const Result<>& result);
  void fail(Entry& entry, Error error);
  bool take_read();
  bool prepare(Entry& entry);
  void find_slot(Entry& entry, const std::function<bool(int)>& is_used);
  void leave_slot(Entry& entry);
  void read_next();
  void run();

  AdapterSlots* const slots_;  // null if there are no slots
  const std::function<void()> wake_;
  std::vector<Entry*> loaded_;  // [slot]; null: free
  std::list<Entry> entries_;
  std::uint64_t uses_ = 0;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::optional<std::string> to_read_;
  std::optional<Result<AdapterFile>> read_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo
