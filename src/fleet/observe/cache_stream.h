// Orders the numbered messages of one endpoint, live and replayed. Has no socket and no clock.
#pragma once

#include <cstdint>
#include <optional>

namespace octavo::fleet {

class CacheStream {
 public:
  enum class Step : std::uint8_t {
    apply,            // apply the message, which is the next one
    clear_and_apply,  // clear the index, since earlier messages are lost, then apply the message
    clear,            // clear the index: the endpoint has restarted, and the replay will contain this message
    pass,             // ignore the message: it was applied, or the replay will contain it
  };

  // can_replay: the owner requests a replay when ask_from() returns a number.
  explicit CacheStream(bool can_replay) : can_replay_(can_replay) { start_over(); }

  // Call it after the end of a connection. Forgets all message numbers.
  void start_over();

  // All messages before `next` (at least one) are known from another source. The replay begins with the last
  // of them, to prove that the endpoint has not restarted. Requires can_replay.
  void resume(std::uint64_t next);

  Step live(std::uint64_t number);
  Step replayed(std::uint64_t number);
  // The replay has ended or failed. Messages that are still missing are lost.
  void replay_ended();

  // Returns the number of the first message to replay, once; nullopt if no replay is needed.
  std::optional<std::uint64_t> ask_from();
  bool replaying() const { return replaying_; }

 private:
  void want_replay();

  const bool can_replay_;
  bool replay_helps_ = false;                 // the endpoint can replay, and no replay has failed
  bool began_ = false;                        // a message was applied
  std::uint64_t next_ = 0;                    // number of the next message to apply
  std::optional<std::uint64_t> newest_ = {};  // number of the newest live message
  bool replaying_ = false;
  bool asked_ = false;
  std::uint64_t replay_from_ = 0;
};

}  // namespace octavo::fleet
