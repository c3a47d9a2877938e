// The part of World about requests, from arrival to the last token.
#include "fleet/simulate/world.h"

namespace octavo::fleet {
namespace {

constexpr TokenId kAnswerToken = 0;
constexpr std::size_t kProgressEvery = 256;

}  // namespace

void World::arrive(std::size_t number) {
  const TraceRequest& request = trace_.requests[number];
  traffic::AnswerTimes& answer = result_.answers[number];
  answer.sent_us = now_us_;
  answer.input_tokens = request.input_tokens;
  describe(request);
  const bool apart = pools_.size() == 2 && !stays_together(number);
  const EndpointId id = choose(number, apart ? Role::prefill : decoding().part);
  if (id == kNoEndpoint) return ended(number);
  if (add_sequence(number, id, apart ? 1 : request.output_tokens)) return;
  give_back(number);
  ended(number);
}

void World::describe(const TraceRequest& request) {
  write_tokens(trace_, request, scratch_.prompt);
  write_text(trace_, request, scratch_.route.text);
  scratch_.route.tokens.assign(scratch_.prompt.begin(), scratch_.prompt.end());
  scratch_.route.tokens_are_exact = true;
  scratch_.route.output_tokens_max = request.output_tokens;
}

ChoiceOptions World::choice_options(std::size_t number, Role part) const {
  return {.part = part, .draw = random_bits(options_.seed, number, part == Role::decode)};
}

// Chooses a replica for the prompt in scratch_.route, and stores the booking in requests_.bookings.
EndpointId World::choose(std::size_t number, Role part) {
  auto choice = balancer_->choose(scratch_.route, choice_options(number, part));
  if (!choice) return kNoEndpoint;
  requests_.bookings[number] = choice->booking;
  return choice->booking.endpoint;
}

// Returns whether the decode replica computes the prompt itself, because only a few of its tokens are not
// cached.
bool World::stays_together(std::size_t number) {
  if (options_.prefill.local_tokens_max == 0) return false;
  const std::int64_t prompt_tokens = trace_.requests[number].input_tokens;
  return balancer_->new_tokens(scratch_.route, choice_options(number, Role::decode))
             .value_or(prompt_tokens) <= options_.prefill.local_tokens_max;
}

// Returns false if the replica refuses the prompt in scratch_.prompt.
bool World::add_sequence(std::size_t number, EndpointId id, int output_tokens) {
  const int total = trace_.requests[number].input_tokens + output_tokens;
  if (!replicas_[id].scheduler->add({.prompt = scratch_.prompt, .max_total_tokens = total, .tag = number}))
    return false;
  if (!replicas_[id].busy) begin_step(id);
  return true;
}

// Chooses a decode replica for a prompt that a prefill replica has computed.
void World::prefilled(std::size_t number, const PlannedSequence& planned, SimulatedReplica& replica) {
  const TraceRequest& request = trace_.requests[number];
  replica.scheduler->finish(planned.sequence);
  give_back(number);
  requests_.apart[number] = true;
  prompt_tokens_ += request.input_tokens;
  cached_tokens_ += planned.cached_tokens;
  describe(request);
  const EndpointId id = choose(number, Role::decode);
  if (id == kNoEndpoint) return ended(number);
  if (!replicas_[id].scheduler->fits(scratch_.prompt.size(), request.input_tokens + request.output_tokens)) {
    give_back(number);
    return ended(number);
  }
  balancer_->first_token(requests_.bookings[number]);
  replicas_[id].no_room.push_back(number);
  begin_transfers(id);
}

// Begins the waiting transfers for which the replica has free blocks.
void World::begin_transfers(EndpointId id) {
  SimulatedReplica& replica = replicas_[id];
  const int block_size = decoding().scheduler.block_size;
  while (!replica.no_room.empty()) {
    const std::size_t number = replica.no_room.front();
    const TraceRequest& request = trace_.requests[number];
    write_tokens(trace_, request, scratch_.prompt);
    const int blocks = request.input_tokens / block_size;
    PrefixHold* hold = replica.scheduler->hold(scratch_.prompt, {}, blocks);
    // Waits while running work may free blocks. Otherwise the decode replica computes the prompt again.
    if (!hold && (replica.busy || replica.transfers > 0)) return;
    replica.no_room.pop_front();
    ++replica.transfers;
    const double tokens = hold ? static_cast<double>(blocks - hold->cached) * block_size : 0;
    if (hold) replica.handed.emplace_back(number, hold);
    const PrefillPool& link = options_.prefill;
    replica.link_free_us =
        std::max(now_us_, replica.link_free_us) +
        static_cast<std::int64_t>(tokens * link.kv_bytes_per_token / link.link_bytes_per_second * 1e6);
    push({replica.link_free_us + link.link_latency_us, id, number});
  }
}

void World::end_transfer(std::size_t number, EndpointId id) {
  SimulatedReplica& replica = replicas_[id];
  --replica.transfers;
  const auto handed = std::ranges::find(replica.handed, number, &Handed::first);
  if (handed != replica.handed.end())
    replica.scheduler->publish(*handed->second, static_cast<int>(handed->second->keys.size()));
  write_tokens(trace_, trace_.requests[number], scratch_.prompt);
  if (add_sequence(number, id, trace_.requests[number].output_tokens)) return;
  let_go(replica, number);
  give_back(number);
  ended(number);
  begin_transfers(id);
}

// Ends the request's hold on the blocks that it has received. The blocks stay cached until they are evicted.
void World::let_go(SimulatedReplica& replica, std::size_t number) {
  const auto handed = std::ranges::find(replica.handed, number, &Handed::first);
  if (handed == replica.handed.end()) return;
  replica.scheduler->let_go(handed->second);
  replica.handed.erase(handed);
}

void World::token(std::size_t number, const PlannedSequence& planned, SimulatedReplica& replica) {
  traffic::AnswerTimes& answer = result_.answers[number];
  replica.scheduler->commit(planned.sequence, kAnswerToken);
  if (replica.role == Role::prefill) return prefilled(number, planned, replica);
  const bool read = reading_us_ != kNoEvent;
  if (read) replica.meter.token();
  if (answer.output_tokens == 0) {
    answer.first_us = now_us_;
    if (read) replica.meter.first_token(answer);
    if (!requests_.apart[number]) {
      prompt_tokens_ += answer.input_tokens;
      cached_tokens_ += planned.cached_tokens;
    } else {
      let_go(replica, number);
    }
    balancer_->first_token(requests_.bookings[number]);
  } else {
    result_.gaps.add(now_us_ - answer.last_us);
  }
  answer.last_us = now_us_;
  balancer_->grow(requests_.bookings[number], 1);
  if (++answer.output_tokens < trace_.requests[number].output_tokens) return;
  replica.scheduler->finish(planned.sequence);
  give_back(number);
  answer.completed = true;
  ++replica.use.requests;
  if (read) replica.meter.finished(answer);
  ended(number);
}

void World::plan_followers() {
  const auto& requests = trace_.requests;
  requests_.follower.assign(requests.size(), kNoRequest);
  for (std::uint32_t i = 0; i < requests.size(); ++i)
    requests[i].follows == kNoRequest ? requests_.thoughts.push({requests[i].arrival_us, i})
                                      : void(requests_.follower[requests[i].follows] = i);
}

// Called at the end of a request. The user pauses before the next request.
void World::ended(std::size_t number) {
  if (trace_.closed && requests_.follower[number] != kNoRequest)
    requests_.thoughts.push(
        {now_us_ + trace_.requests[requests_.follower[number]].arrival_us, requests_.follower[number]});
  if (++requests_.ended % kProgressEvery == 0) progress_(requests_.ended, trace_.requests.size());
}

}  // namespace octavo::fleet
