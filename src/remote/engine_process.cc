#include "remote/engine_process.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "request/check_request.h"

namespace octavo::remote {
namespace {

// A request ends with an error if n engines in a row die with it before it gets a token. A young engine
// counts for several: it is likely that the request was there from its start.
constexpr int kRequestDeathsMax = 20;
constexpr int kYoungDeath = 4;
// After n deaths in a row no engine is started any more.
constexpr int kDeathsMax = 6;
constexpr int kRestartMs = 300;  // wait before a restart after young deaths, times their number
constexpr int kStopMs = 5'000;
constexpr int kMeetMs = 50;  // interval to check if an engine of another host has connected

Error away() { return {ErrorCode::unavailable, "the engine waits for its ranks on other hosts", {}}; }

Error asleep() { return {ErrorCode::unavailable, "the engine sleeps; POST /wake_up wakes it", {}}; }

}  // namespace

Result<std::unique_ptr<EngineProcess>> EngineProcess::start(EngineProcessOptions options) {
  std::unique_ptr<EngineProcess> process(new EngineProcess(std::move(options)));
  auto started = process->started_.get_future();
  process->thread_ = std::thread([p = process.get()] { p->run(); });
  TRY_VOID(started.get());
  return process;
}

EngineProcess::~EngineProcess() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = stopping_ = true;
  }
  wakeup_.wake();
  if (thread_.joinable()) thread_.join();
}

Result<RequestId> EngineProcess::submit(Request request, std::shared_ptr<OutputSink> sink) {
  TRY_VOID(check_request(request, info_));
  const int answers = request.answers();
  const int places = info_.max_num_seqs + info_.max_queued;
  RequestId id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (broken_) return failure(ErrorCode::unavailable, "the engine has failed");
    if (closed_) return failure(ErrorCode::unavailable, "the engine is shutting down");
    if (sleep_level_ != 0) return std::unexpected(asleep());
    if (presence_ == EnginePresence::away) return std::unexpected(away());
    if (answers > places)
      return invalid("n", "this engine holds at most {} unfinished answers, got {}", places, answers);
    if (places_taken_ + answers > places)
      return failure(ErrorCode::resource_exhausted,
                     "{} answers are unfinished, the limit is {} (--max-num-seqs and --max-num-queued-reqs)",
                     places_taken_, places);
    places_taken_ += answers;
    id = ++last_id_;
    commands_.emplace_back(Accepted{id, std::move(request), std::move(sink), now_us()});
  }
  wakeup_.wake();
  return id;
}

void EngineProcess::post(Command command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  wakeup_.wake();
}

void EngineProcess::abort(RequestId id) { post(Abort{id}); }

void EngineProcess::reset_prefix_cache() { post(ResetPrefixCache{}); }

void EngineProcess::look_at_prefixes() { post(LookAtPrefixes{}); }

void EngineProcess::load_adapter(AdapterSource source, AdapterDone done) {
  change_adapter({.source = std::move(source)}, std::move(done));
}

void EngineProcess::unload_adapter(std::string name, AdapterDone done) {
  change_adapter({.source = {.name = std::move(name), .path = {}}, .unload = true}, std::move(done));
}

void EngineProcess::change_adapter(ChangeAdapter change, AdapterDone done) {
  const bool no_process = [&] {
    const std::lock_guard lock(mutex_);
    if (sleep_level_ != 2) commands_.emplace_back(AdapterCommand{std::move(change), std::move(done)});
    return sleep_level_ == 2;
  }();
  if (no_process) return done(std::unexpected(asleep()));
  wakeup_.wake();
}

void EngineProcess::sleep(int level, Done done) {
  const auto refusal = [&]() -> Result<> {
    const std::lock_guard lock(mutex_);
    if (level != 1 && level != 2) return invalid("level", "must be 1 or 2, got {}", level);
    if (broken_ || closed_)
      return failure(ErrorCode::unavailable, "the engine has failed or is shutting down");
    if (sleep_level_ != 0) return invalid("level", "the engine sleeps already, at level {}", sleep_level_);
    sleep_level_ = level;
    ++sleeps_;
    slept_ = std::move(done);
    return {};
  }();
  if (!refusal) return done(refusal);
  wakeup_.wake();
}

void EngineProcess::wake_up(Done done) {
  Done taken_back;
  const auto at_once = [&]() -> std::optional<Result<>> {
    const std::lock_guard lock(mutex_);
    if (broken_ || closed_)
      return failure(ErrorCode::unavailable, "the engine has failed or is shutting down");
    if (woken_) return failure(ErrorCode::unavailable, "the engine is still waking up");
    if (sleep_level_ == 2 && (!slept_ || ending_)) {
      woken_ = std::move(done);
      return std::nullopt;  // when another process is ready
    }
    if (sleep_level_ == 1) commands_.emplace_back(WakeUp{});
    taken_back = std::exchange(slept_, nullptr);
    sleep_level_ = 0;
    return Result<>{};
  }();
  wakeup_.wake();
  if (taken_back) taken_back(failure(ErrorCode::unavailable, "the engine was woken before it slept"));
  if (at_once) done(*at_once);
}

void EngineProcess::pause(PauseMode mode, Done done) {
  const bool gone = [&] {
    const std::lock_guard lock(mutex_);
    if (!broken_ && !closed_) {
      paused_ = true;
      commands_.emplace_back(PauseCommand{mode, std::move(done)});
    }
    return broken_ || closed_;
  }();
  if (gone) return done(failure(ErrorCode::unavailable, "the engine has failed or is shutting down"));
  wakeup_.wake();
}

void EngineProcess::resume() {
  {
    const std::lock_guard lock(mutex_);
    paused_ = false;
  }
  post(Resume{});
}

void EngineProcess::reload_weights(std::string path, Done done) {
  const auto refusal = [&]() -> Result<> {
    if (options_.weights_flag.empty())
      return failure(ErrorCode::unsupported, "this engine keeps the weights that it was started with");
    if (!path.empty() && options_.check_weights) TRY_VOID(options_.check_weights(path));
    const std::lock_guard lock(mutex_);
    if (broken_ || closed_)
      return failure(ErrorCode::unavailable, "the engine has failed or is shutting down");
    if (sleep_level_ != 0) return std::unexpected(asleep());
    if (reload_) return failure(ErrorCode::unavailable, "other weights are being read already");
    reload_ = {std::move(path), std::move(done)};
    return {};
  }();
  if (!refusal) return done(refusal);
  wakeup_.wake();
}

// True: the process must end, because another one will start with the new weights.
bool EngineProcess::begins_reload() {
  const std::lock_guard lock(mutex_);
  if (!reload_ || !ready_) return false;
  weights_before_ = weights_;
  if (!reload_->path.empty()) weights_ = reload_->path;
  return leaving_ = true;
}

void EngineProcess::end_reload(const Result<>& result) {
  std::optional<Reload> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::exchange(reload_, std::nullopt);
  }
  if (ended) ended->done(result);
}

// Records the state to repeat to an engine after a restart, after earlier commands. True: the process must
// end, for level 2.
bool EngineProcess::falls_asleep() {
  const std::lock_guard lock(mutex_);
  if (!slept_ || !ready_ || places_taken_ > 0 || !commands_.empty()) return false;
  ending_ = sleep_level_ == 2;
  if (!ending_ && told_to_sleep_ == 0) {
    told_to_sleep_ = sleeps_;
    append_frame(child_.socket.out, Sleep{});
  }
  return ending_;
}

// Waits without a process until wake_up(). False: this client ends.
bool EngineProcess::sleep_on() {
  for (;;) {
    end_adapter_commands(asleep());
    pollfd waking{wakeup_.fd(), POLLIN, 0};
    poll(&waking, 1, -1);
    take_commands();
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    if (woken_) return true;
  }
}

bool EngineProcess::is_last_sleep(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return number == sleeps_;
}

void EngineProcess::end_sleep(const Result<>& result) {
  Done done;
  {
    const std::lock_guard lock(mutex_);
    done = std::exchange(slept_, nullptr);
    ending_ = false;
    if (!result) sleep_level_ = 0;
  }
  if (done) done(result);
}

void EngineProcess::end_waking(const Result<>& result) {
  Done done;
  {
    const std::lock_guard lock(mutex_);
    done = std::exchange(woken_, nullptr);
    if (done) sleep_level_ = 0;
  }
  if (done) done(result);
}

std::vector<EngineStats> EngineProcess::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.engine = info_.index;
  stats.unfinished = places_taken_;
  stats.healthy = !broken_;
  stats.presence = presence_;
  stats.sleep_level = slept_ ? 0 : sleep_level_;
  stats.paused = paused_;
  return {stats};
}

void EngineProcess::drain() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  emptied_.wait(lock, [&] { return places_taken_ == 0; });
}

pid_t EngineProcess::pid() const {
  const std::lock_guard lock(mutex_);
  return pid_;
}

void EngineProcess::run() {
  for (;;) {
    const Result<> ended = serve_child();
    const std::string fate = child_.kill();
    {
      const std::lock_guard lock(mutex_);
      pid_ = -1;
      if (!ending_) presence_ = options_.on_several_hosts ? EnginePresence::away : EnginePresence::starting;
      stats_.running = 0;
      if (stopping_) break;
    }
    if (ending_) {
      ready_ = false;
      end_sleep({});
      if (!sleep_on()) break;
      continue;
    }
    if (std::exchange(leaving_, false)) continue;
    const Error death = load_error_.value_or(
        Error{ErrorCode::internal,
              fmt::format("the engine's process has died: {}{}", ended ? "" : ended.error().message + ", ", fate),
              {}});
    if (!std::exchange(told_, true)) return started_.set_value(std::unexpected(death));
    log_error("{}", death.message);
    if (weights_before_) {
      weights_ = *std::exchange(weights_before_, std::nullopt);
      reload_error_ = death;
      continue;
    }
    if (recovers(death)) continue;
    {
      const std::lock_guard lock(mutex_);
      broken_ = true;
    }
    end_sleep(std::unexpected(death));
    end_waking(std::unexpected(death));
    end_reload(std::unexpected(death));
    log_error("no engine is started any more: {} have died in a row", deaths_);
    end_all({ErrorCode::unavailable, "the engine has failed", {}});
    for (bool stopping = false; !stopping;) {
      pollfd waking{wakeup_.fd(), POLLIN, 0};
      poll(&waking, 1, -1);
      take_commands();
      end_all({ErrorCode::unavailable, "the engine has failed", {}});
      const std::lock_guard lock(mutex_);
      stopping = stopping_;
    }
    return;
  }
  take_commands();
  const Error stopped{ErrorCode::unavailable, "the engine was stopped", {}};
  end_sleep(std::unexpected(stopped));
  end_waking(std::unexpected(stopped));
  end_reload(std::unexpected(stopped));
  end_all(stopped);
}

// Runs an engine until it dies or this client stops. An error describes the death, if known.
Result<> EngineProcess::serve_child() {
  ready_ = got_on_ = false;
  told_to_sleep_ = 0;
  load_error_.reset();
  child_ = ChildProcess();  // drops the previous process
  TRY(child_, begin_child());
  {
    const std::lock_guard lock(mutex_);
    pid_ = child_.pid();
  }
  append_frame(child_.socket.out, Hello{.num_blocks = info_.num_blocks});
  for (;;) {
    if (!child_.socket.flush()) return {};
    pollfd fds[] = {{child_.socket.fd(), POLLIN, 0}, {wakeup_.fd(), POLLIN, 0}};
    if (!child_.socket.out.empty()) fds[0].events |= POLLOUT;
    poll(fds, 2, std::max(options_.hung_after_ms / 4, 1));
    if (fds[1].revents != 0) take_commands();
    if (begins_reload() || falls_asleep()) break;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) break;
    }
    if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      const bool there = child_.socket.receive();
      for (;;) {
        TRY(const auto frame, child_.socket.next());
        if (!frame) break;
        TRY(FromEngine message, read_from_engine(*frame));
        TRY_VOID(take(std::move(message)));
      }
      if (!there) return {};
      heard_us_ = now_us();
    }
    if (ready_ && now_us() - heard_us_ > std::int64_t{options_.hung_after_ms} * 1000)
      return failure(ErrorCode::internal, "no sign of life for {} ms", options_.hung_after_ms);
  }
  child_.stop(kStopMs);
  return {};
}

// An engine of another host: waits until it connects. Requests that wait for longer than hung_after_ms end
// with an error.
Result<ChildProcess> EngineProcess::begin_child() {
  if (!options_.meeting) {
    std::vector<std::string> command = options_.command;
    if (!weights_.empty()) command.push_back(fmt::format("{}={}", options_.weights_flag, weights_));
    return ChildProcess::start(command, options_.program);
  }
  for (const std::int64_t began_us = now_us();;) {
    if (auto connection = options_.meeting->take(options_.number))
      return ChildProcess::of_another_host(FrameSocket(connection->release()));
    pollfd waking{wakeup_.fd(), POLLIN, 0};
    poll(&waking, 1, kMeetMs);
    if (waking.revents != 0) take_commands();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return failure(ErrorCode::unavailable, "the engine was stopped");
    }
    if (now_us() - began_us > std::int64_t{options_.hung_after_ms} * 1000)
      end_requests(
          {ErrorCode::unavailable, fmt::format("engine {} of another host is away", options_.number), {}});
  }
}

// After a death: decides whether another engine is started. Ends the requests that may be the cause.
bool EngineProcess::recovers(const Error& death) {
  const bool young = now_us() - ready_us_ < std::int64_t{options_.young_ms} * 1000;
  deaths_ = got_on_ || (ready_ && !young) ? 1 : deaths_ + 1;
  if (deaths_ >= kDeathsMax) return false;
  if (ready_) {
    const Error gone{ErrorCode::internal,
                     "engines died with this request one after the other; the last: " + death.message,
                     {}};
    for (auto place = unfinished_.begin(); place != unfinished_.end();) {
      const auto next = std::next(place);
      if (place->second.aborting)
        end(place, FinishReason::abort, {});
      else if ((place->second.deaths += young ? kYoungDeath : 1) >= kRequestDeathsMax)
        end(place, FinishReason::error, gone);
      place = next;
    }
  }
  if (deaths_ > 1) std::this_thread::sleep_for(std::chrono::milliseconds(kRestartMs * (deaths_ - 1)));
  log_warning("starting the engine again");
  return true;
}

void EngineProcess::take_commands() {
  wakeup_.clear();
  std::vector<Command> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (Command& command : commands) take(std::move(command));
}

// An engine that is not ready gets all unfinished requests when it is.
void EngineProcess::take(Command&& command) {
  if (auto* accepted = std::get_if<Accepted>(&command)) {
    Request& request = accepted->request;
    const int places = request.answers();
    if (request.answers_so_far.empty())
      for (int i = 0; i < request.sampling.n; ++i) request.answers_so_far.push_back({i, {}});
    if (!request.entropy) request.entropy = random_bits(options_.seed, accepted->id);
    Submit message{accepted->id, std::move(request)};
    if (ready_) append_frame(child_.socket.out, message);
    unfinished_.emplace(accepted->id, Unfinished{.request = std::move(message.request),
                                                 .sink = std::move(accepted->sink),
                                                 .places = places,
                                                 .times = {.arrived_us = accepted->arrived_us}});
  } else if (const auto* abort = std::get_if<Abort>(&command)) {
    const auto place = unfinished_.find(abort->id);
    if (place == unfinished_.end()) return;
    place->second.aborting = true;
    if (ready_) return append_frame(child_.socket.out, *abort);
    end(place, FinishReason::abort, {});
  } else if (auto* adapter = std::get_if<AdapterCommand>(&command)) {
    take(std::move(*adapter));
  } else if (std::holds_alternative<WakeUp>(command)) {
    if (ready_) append_frame(child_.socket.out, WakeUp{});
  } else if (auto* pause = std::get_if<PauseCommand>(&command)) {
    const std::uint64_t id = ++last_pause_;
    if (ready_) append_frame(child_.socket.out, Pause{id, pause->mode});
    pauses_.emplace(id, std::move(*pause));
  } else if (std::holds_alternative<Resume>(command)) {
    if (ready_) append_frame(child_.socket.out, Resume{});
    still_ = false;
    end_pauses(failure(ErrorCode::unavailable, "the engine was resumed before it paused"));
  } else if (std::holds_alternative<LookAtPrefixes>(command)) {
    if (ready_) append_frame(child_.socket.out, LookAtPrefixes{});
  } else if (ready_) {
    append_frame(child_.socket.out, ResetPrefixCache{});
  }
}

void EngineProcess::take(AdapterCommand&& command) {
  command.change.id = ++last_adapter_command_;
  if (ready_) append_frame(child_.socket.out, command.change);
  adapter_commands_.emplace(command.change.id, std::move(command));
}

void EngineProcess::take(const AdapterChanged& changed) {
  auto answered = adapter_commands_.extract(changed.id);
  if (answered.empty()) return;
  const auto& [change, done] = answered.mapped();
  if (changed.error) return done(std::unexpected(*changed.error));
  if (!change.unload) {
    adapters_[change.source.name] = change.source.path;
    left_adapters_.erase(change.source.name);
  } else if (auto left = adapters_.extract(change.source.name)) {
    left_adapters_.insert_or_assign(left.key(), left.mapped());
    forget_left_adapters();
  }
  done({});
}

void EngineProcess::forget_left_adapters() {
  std::erase_if(left_adapters_, [&](const auto& left) {
    return std::ranges::none_of(
        unfinished_, [&](const auto& u) { return u.second.request.identity.adapter == left.first; });
  });
}

void EngineProcess::end_pauses(const Result<>& result) {
  for (const auto& [id, pause] : std::exchange(pauses_, {})) pause.done(result);
}

void EngineProcess::end_adapter_commands(const Error& error) {
  for (const auto& [id, command] : std::exchange(adapter_commands_, {})) command.done(std::unexpected(error));
}

Result<> EngineProcess::take(FromEngine&& message) {
  if (auto* output = std::get_if<Output>(&message)) {
    take(std::move(*output));
  } else if (const auto* stats = std::get_if<EngineStats>(&message)) {
    if (!stats->healthy) return failure(ErrorCode::internal, "its device failed");
    const std::lock_guard lock(mutex_);
    stats_ = *stats;
  } else if (const auto* changed = std::get_if<AdapterChanged>(&message)) {
    take(*changed);
  } else if (const auto* slept = std::get_if<Slept>(&message)) {
    // Skipped if a wake_up() has cancelled the sleep.
    if (is_last_sleep(std::exchange(told_to_sleep_, 0)))
      end_sleep(slept->error ? Result<>(std::unexpected(*slept->error)) : Result<>());
  } else if (const auto* paused = std::get_if<Paused>(&message)) {
    if (const auto waits = pauses_.extract(paused->id); !waits.empty()) {
      still_ |= !paused->error;
      waits.mapped().done(paused->error ? Result<>(std::unexpected(*paused->error)) : Result<>());
    }
  } else if (const auto* loading = std::get_if<Loading>(&message)) {
    if (!told_ && options_.progress) options_.progress(loading->done, loading->all);
  } else if (const auto* ready = std::get_if<Ready>(&message)) {
    if (ready->version != wire_version())
      return failure(ErrorCode::corrupt,
                     "wire version {:x}, expected {:x}: run the same octavo on both sides", ready->version,
                     wire_version());
    greet(*ready);
  } else if (const auto* failed = std::get_if<Failed>(&message)) {
    load_error_ = failed->error;
  }
  return {};
}

void EngineProcess::greet(const Ready& ready) {
  ready_ = true;
  ready_us_ = heard_us_ = now_us();
  {
    const std::lock_guard lock(mutex_);
    presence_ = EnginePresence::up;
  }
  if (!std::exchange(told_, true)) {
    info_ = ready.info;
    started_.set_value({});
  }
  if (deaths_ > 0) log_info("the engine is back, {} requests go on", unfinished_.size());
  end_waking({});
  if (std::exchange(weights_before_, std::nullopt)) {
    log_info("the engine has other weights, {} requests go on", unfinished_.size());
    end_reload({});
  } else if (reload_error_) {
    end_reload(std::unexpected(*std::exchange(reload_error_, std::nullopt)));
  }
  forget_left_adapters();
  for (const auto* adapters : {&adapters_, &left_adapters_})
    for (const auto& [name, path] : *adapters)
      append_frame(child_.socket.out, ChangeAdapter{.source = {name, path}});
  for (const auto& [id, command] : adapter_commands_) append_frame(child_.socket.out, command.change);
  // An active pause is sent before all requests: a client that received its response must not see a token. A
  // pause without a response yet is sent after the requests that were running.
  if (still_) append_frame(child_.socket.out, Pause{});
  for (const auto& [id, unfinished] : unfinished_)
    append_frame(child_.socket.out, Submit{id, unfinished.request});
  for (const auto& [id, pause] : pauses_) append_frame(child_.socket.out, Pause{id, pause.mode});
}

void EngineProcess::take(Output&& output) {
  const auto place = unfinished_.find(output.id);
  if (place == unfinished_.end()) return;
  Unfinished& whose = place->second;
  std::vector<AnswerSoFar>& answers = whose.request.answers_so_far;
  const auto answer = std::ranges::find(answers, output.index, &AnswerSoFar::index);
  if (answer == answers.end()) return;
  if (!output.token_ids.empty()) {
    got_on_ = true;
    whose.deaths = 0;
    if (whose.times.first_token_us == 0) whose.times.first_token_us = now_us();
  }
  if (!output.finished) {
    answer->tokens.insert(answer->tokens.end(), output.token_ids.begin(), output.token_ids.end());
    return whose.sink->deliver(std::move(output));
  }
  // The engine that ends an answer may not be the one that began it.
  output.times.arrived_us = whose.times.arrived_us;
  if (output.times.first_token_us > whose.times.first_token_us && whose.times.first_token_us != 0)
    output.times.first_token_us = whose.times.first_token_us;
  output.times.scheduled_us = std::min(output.times.scheduled_us, output.times.first_token_us);
  answers.erase(answer);
  whose.sink->deliver(std::move(output));
  if (!answers.empty()) return;
  const int places = whose.places;
  unfinished_.erase(place);
  give_back(places);
}

// Ends the unfinished answers of a request, without the engine.
void EngineProcess::end(std::map<RequestId, Unfinished>::iterator place, FinishReason reason,
                        const std::optional<Error>& error) {
  const Unfinished whose = std::move(place->second);
  for (const AnswerSoFar& answer : whose.request.answers_so_far) {
    Output output;
    output.id = place->first;
    output.engine = info_.index;
    output.index = answer.index;
    output.finished = reason;
    output.error = error;
    output.times = whose.times;
    output.times.last_token_us = now_us();
    whose.sink->deliver(std::move(output));
  }
  unfinished_.erase(place);
  give_back(whose.places);
}

void EngineProcess::end_all(const Error& error) {
  end_adapter_commands(error);
  end_pauses(std::unexpected(error));
  end_requests(error);
}

void EngineProcess::end_requests(const Error& error) {
  while (!unfinished_.empty()) end(unfinished_.begin(), FinishReason::error, error);
}

void EngineProcess::give_back(int places) {
  const std::lock_guard lock(mutex_);
  places_taken_ -= places;
  if (places_taken_ == 0) emptied_.notify_all();
}

}  // namespace octavo::remote
