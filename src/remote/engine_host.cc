#include "remote/engine_host.h"

#include <poll.h>

#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/processors.h"

namespace octavo::remote {
namespace {

constexpr std::int64_t kStatsUs = 25'000;

}  // namespace

// Replaces the engine's request ids by the client's ids.
class EngineHost::Sink final : public OutputSink {
 public:
  Sink(EngineHost& host, RequestId id, int answers) : host_(host), id_(id), unfinished_(answers) {}

  void deliver(Output&& output) noexcept override {
    output.id = id_;
    unfinished_ -= output.finished.has_value();
    host_.deliver(output);
    if (unfinished_ == 0) host_.ended(id_);
  }

 private:
  EngineHost& host_;
  RequestId id_;
  int unfinished_;
};

Result<Hello> EngineHost::hello() {
  for (;;) {
    TRY(const auto frame, socket_.next());
    if (frame) {
      TRY(const ToEngine message, read_to_engine(*frame));
      const auto* hello = std::get_if<Hello>(&message);
      if (!hello) return failure(ErrorCode::corrupt, "the client's first message must be a hello");
      if (hello->version != wire_version())
        return failure(ErrorCode::corrupt,
                       "the server has wire version {:x}, expected {:x}: run the same octavo on both sides",
                       hello->version, wire_version());
      return *hello;
    }
    pollfd readable{socket_.fd(), POLLIN, 0};
    poll(&readable, 1, -1);
    if (!socket_.receive()) return failure(ErrorCode::unavailable, "the server has closed the connection");
  }
}

template <class Message>
void EngineHost::send(const Message& message) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  // First sends the outputs that were produced before this message, so that the client receives both in
  // order.
  socket_.out += std::exchange(steps_, {}) + std::exchange(step_, {});
  append_frame(socket_.out, message);
  closed_ = !socket_.flush();
}

void EngineHost::loading(std::size_t done, std::size_t all) { send(Loading{done, all}); }
void EngineHost::failed(const Error& error) { send(Failed{error}); }

void EngineHost::deliver(const Output& output) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  append_frame(step_, output);
  step_ends_ |= output.finished.has_value();
}

void EngineHost::ended(RequestId id) {
  const std::lock_guard lock(ids_mutex_);
  engine_ids_.erase(id);
}

void EngineHost::flush() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || step_.empty()) return;
    steps_ += std::exchange(step_, {});
    stats_due_ |= std::exchange(step_ends_, false);
  }
  unsent_.wake();
}

// Sends the stats before the last output of a sequence, so that metrics already count a request when the
// client receives its end.
void EngineHost::send_steps(EngineClient& engine, bool with_stats) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  std::optional<EngineStats> stats;
  if (std::exchange(stats_due_, false) || with_stats) stats = engine.stats().front();
  if (stats && stats->condition.healthy) append_frame(socket_.out, *stats);
  socket_.out += std::exchange(steps_, {});
  // After a message that reports a failure, the client stops reading. So in this case the last outputs are
  // sent before the stats.
  if (stats && !stats->condition.healthy) {
    socket_.out += std::exchange(step_, {});
    append_frame(socket_.out, *stats);
  }
  closed_ = !socket_.flush();
}

// Waits for messages, for outputs, or until stats are due. Returns false if the client has disconnected.
bool EngineHost::wait(bool& readable) {
  pollfd fds[] = {{socket_.fd(), POLLIN, 0}, {unsent_.fd(), POLLIN, 0}};
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    if (!socket_.out.empty()) fds[0].events |= POLLOUT;
  }
  poll(fds, 2, static_cast<int>(kStatsUs / 1000));
  if (fds[1].revents != 0) unsent_.clear();
  readable = (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
  return true;
}

void EngineHost::run(EngineClient& engine) {
  shorten_slice();
  send(Ready{.info = engine.info()});
  std::int64_t sent_us = 0;
  bool readable = false;
  while (wait(readable)) {
    const std::int64_t now = now_us();
    const bool due = now - sent_us >= kStatsUs;
    if (due) sent_us = now;
    send_steps(engine, due);
    if (!readable) continue;
    if (!socket_.receive()) return;
    for (;;) {
      const auto frame = socket_.next();
      if (frame && !*frame) break;
      auto message = frame ? read_to_engine(**frame) : std::unexpected(frame.error());
      if (!message)
        return log_error("the server sent an invalid message to the engine: {}", message.error().message);
      take(*std::move(message), engine);
    }
  }
}

void EngineHost::take(ToEngine&& message, EngineClient& engine) {
  if (auto* wanted = std::get_if<Submit>(&message)) {
    submit(std::move(*wanted), engine);
  } else if (const auto* abort = std::get_if<Abort>(&message)) {
    const std::lock_guard lock(ids_mutex_);
    if (const auto found = engine_ids_.find(abort->id); found != engine_ids_.end())
      engine.abort(found->second);
  } else if (std::holds_alternative<ResetPrefixCache>(message)) {
    engine.reset_prefix_cache();
  } else if (std::holds_alternative<LookAtPrefixes>(message)) {
    engine.look_at_prefixes();
  } else if (std::holds_alternative<LogState>(message)) {
    engine.log_state();
  } else if (std::holds_alternative<Sleep>(message)) {
    engine.sleep(1, [this](const Result<>& result) {
      send(Slept{result ? std::nullopt : std::optional(result.error())});
    });
  } else if (std::holds_alternative<WakeUp>(message)) {
    engine.wake_up([this](const Result<>& result) {
      send(Woken{result ? std::nullopt : std::optional(result.error())});
    });
  } else if (const auto* pause = std::get_if<Pause>(&message)) {
    engine.pause(pause->mode, [this, &engine, id = pause->id](const Result<>& result) {
      send_steps(engine, /*with_stats=*/true);  // so that metrics read after the pause count all its tokens
      send(Paused{id, result ? std::nullopt : std::optional(result.error())});
    });
  } else if (std::holds_alternative<Resume>(message)) {
    engine.resume();
  } else if (auto* sessions = std::get_if<CommandSessions>(&message)) {
    engine.command_sessions(std::move(sessions->command), [this, id = sessions->id](auto result) {
      if (id == 0) return;  // restores a session after a restart; nobody waits for the response
      send(result ? SessionsChanged{.id = id, .sessions = *std::move(result)}
                  : SessionsChanged{.id = id, .error = result.error()});
    });
  } else if (auto* change = std::get_if<ChangeAdapter>(&message)) {
    const auto done = [this, id = change->id](const Result<>& result) {
      if (id == 0) {
        if (!result) log_error("cannot load an adapter again: {}", result.error().message);
        return;
      }
      send(AdapterChanged{id, result ? std::nullopt : std::optional(result.error())});
    };
    if (change->unload)
      engine.unload_adapter(change->source.name, done);
    else
      engine.load_adapter(std::move(change->source), done);
  }
}

void EngineHost::submit(Submit&& wanted, EngineClient& engine) {
  std::vector<int> answers;
  for (const AnswerSoFar& begun : wanted.request.answers_so_far) answers.push_back(begun.index);
  auto sink = std::make_shared<Sink>(*this, wanted.id, static_cast<int>(answers.size()));
  {
    // The lock is held during submit(), because the request may end before its id is in the map.
    const std::lock_guard lock(ids_mutex_);
    const auto id = engine.submit(std::move(wanted.request), sink);
    if (id) {
      engine_ids_[wanted.id] = *id;
      return;
    }
    for (const int index : answers) {
      Output refusal;
      refusal.id = wanted.id;
      refusal.engine = engine.info().index;
      refusal.index = index;
      refusal.finished = FinishReason::error;
      refusal.error = id.error();
      send(refusal);
    }
  }
}

}  // namespace octavo::remote
