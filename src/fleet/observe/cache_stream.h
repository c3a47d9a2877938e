// Puts the live and replayed messages of one endpoint in order by number, and detects lost messages.
// CacheSubscriber owns the sockets and the clock.
#pragma once

#include <cstdint>
#include <optional>

namespace octavo::fleet {

class CacheStream {
 public:
  enum class Step : std::uint8_t {
    apply,
    clear_and_apply,  // earlier messages are lost: clear the endpoint's index, then apply this message
    // the endpoint has restarted: clear its index, and wait for the replay, which will contain this message
    clear,
    pass,  // ignore the message, because it was already applied or the replay will contain it
  };

  // `can_replay` is set if the endpoint can replay. The owner then requests a replay whenever request_from()
  // returns a number.
  explicit CacheStream(bool can_replay) : can_replay_(can_replay) { start_over(); }

  // Must be called after a connection has ended. Forgets all message numbers.
  void start_over();

  // Continues from another source that has applied all messages before `next` (at least one). The replay
  // begins with message next - 1, so that the owner can check that the endpoint has not restarted. Requires
  // can_replay.
  void resume(std::uint64_t next);

  Step live(std::uint64_t number);
  Step replayed(std::uint64_t number);
  // The replay has ended or failed. If messages are missing, another replay follows. If they were missing
  // when the replay was requested, and it contained none of them, they count as lost instead.
  void replay_ended();

  // Returns the number of the first message to replay, once for each replay. Returns nullopt if no replay
  // is needed.
  std::optional<std::uint64_t> request_from();
  bool replaying() const { return replaying_; }

  // Returns whether a live message has arrived since the connection began. From then on, a gap in the numbers
  // shows each loss. Before that, the endpoint may publish messages that reach neither the subscription,
  // which is not active yet, nor the replay, which has ended.
  bool subscribed() const { return newest_.has_value(); }
  // Requests another replay from the next number on. Requires can_replay.
  void check();

 private:
  void want_replay();

  const bool can_replay_;
  bool replay_helps_ = false;                 // the endpoint can replay, and no replay has failed
  bool began_ = false;
  std::uint64_t next_ = 0;
  std::optional<std::uint64_t> newest_ = {};  // highest number of a live message
  bool replaying_ = false;
  bool requested_ = false;
  bool missed_ = false;  // live messages were missing when the replay was requested
  std::uint64_t replay_from_ = 0;
};

}  // namespace octavo::fleet
