// Puts one endpoint's numbered messages in order, both live and replayed ones. Has no socket and no clock.
#pragma once

#include <cstdint>
#include <optional>

namespace octavo::fleet {

class CacheStream {
 public:
  enum class Step : std::uint8_t {
    apply,            // the message is the next one
    clear_and_apply,  // messages before it are lost
    clear,            // the endpoint has restarted; the replay delivers the message again
    pass,             // the message is already known, or will be replayed
  };

  // can_replay: the owner requests a replay when ask_from() returns a number.
  explicit CacheStream(bool can_replay) : can_replay_(can_replay) { start_over(); }

  // Call it when the connection is lost: the endpoint's next messages are numbered from 0 on.
  void start_over();

  // Everything before `next` (at least one message) is known from another source. The replay repeats the last
  // of these messages, which proves that the endpoint has not restarted. Requires can_replay.
  void resume(std::uint64_t next);

  Step live(std::uint64_t number);
  Step replayed(std::uint64_t number);
  // The replay has ended or failed: messages that are still missing are lost.
  void replay_ended();

  // Number of the first message to replay; each is returned once. nullopt: no replay is needed.
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
