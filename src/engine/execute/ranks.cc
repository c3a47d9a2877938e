#include "engine/execute/ranks.h"

#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/log.h"
#include "base/thread_pool.h"
#include "dist/message_group.h"
#include "dist/tcp_transport.h"
#include "model/fingerprint.h"

namespace octavo {
namespace {

// Time without a message after which a rank counts as hung. The ranks of a stage exchange messages in every
// layer. Another stage or engine may compute a whole prompt before its next message.
constexpr int kHungMs = 10'000;
constexpr int kHungStageMs = 120'000;
constexpr int kEndMs = 2'000;
// All engines start at the same time. If an engine ends during the start, all engines end and restart.
constexpr int kMeetEnginesS = 300;
// maximum number of pipeline stages; each has one step in flight (SchedulerOptions::max_steps_in_flight)
constexpr int kStagesMax = 16;
// Usual maximum size in bytes of a stage's output for one token.
constexpr std::size_t kRowBytes = std::size_t{128} << 10;

struct Greeting {
  bool ready = true;
  ErrorCode code = ErrorCode::internal;
  char field[64] = {};
  char message[1024] = {};
};

Greeting greeting_of(const Result<>& ready) {
  Greeting greeting;
  if (ready) return greeting;
  greeting.ready = false;
  greeting.code = ready.error().code;
  ready.error().field.copy(greeting.field, sizeof greeting.field - 1);
  ready.error().message.copy(greeting.message, sizeof greeting.message - 1);
  return greeting;
}

// Returns whether the peer has closed the connection. No data is expected, so the socket is readable only
// if the peer has closed it.
bool is_closed(int socket) {
  pollfd readable{socket, POLLIN, 0};
  return poll(&readable, 1, 0) != 0;
}

}  // namespace

Result<std::string> hosts_identity(const EngineOptions& o) {
  TRY(std::string files, sampled_fingerprint(o.model.dir, o.model.weights_dir));
  if (const std::string mmproj = o.model.mmproj_file(); !mmproj.empty()) {
    TRY(const std::string encoder, sampled_fingerprint(mmproj));
    files += "|" + encoder;
  }
  const ExpertBalancing& b = o.parallel.expert_balancing;
  return fmt::format(
      "{}|{}|{}|{}|{}|{}|{}", files, o.model.hf_overrides,
      fmt::join({o.model.load_format, o.model.runner, o.model.convert, o.model.pooling_type, o.model.dtype,
                 o.model.quantization, o.cache.dtype},
                "|"),
      fmt::join({o.parallel.nodes.count, o.parallel.tensor_parallel_size, o.parallel.pipeline_parallel_size,
                 int{o.parallel.enable_expert_parallel}},
                "|"),
      fmt::join({int{b.enabled}, b.redundant_experts, b.window_size, b.step_interval, int{b.use_async}}, "|"),
      fmt::join({o.model.max_model_len.value_or(0), o.cache.block_size, int{o.cache.sliding_window_groups},
                 int{o.cache.enable_prefix_caching}, o.cache.mamba_block_size.value_or(0),
                 o.schedule.max_num_batched_tokens, o.schedule.max_num_seqs},
                "|"),
      fmt::join({o.media.images, o.media.videos, o.media.sounds, o.lora.in_memory(), o.lora.max_lora_rank,
                 int{o.speculation.has_value()}, int{o.model.prompt_embeds}},
                "|"));
}

namespace {

Result<> check_shared_experts(const EngineOptions& options) {
  if (!options.parallel.shares_experts()) return {};
  const auto refuse = [&](std::string_view field, std::string_view what) {
    return field_failure(
        field, ErrorCode::unsupported,
        "{} cannot be combined with --enable-expert-parallel and --data-parallel-size {}: remove one of them",
        what, options.parallel.nodes.expert_engines);
  };
  if (options.parallel.mpi || options.parallel.nodes.count > 1)
    return refuse("nnodes", "an engine whose ranks are on several hosts");
  if (options.parallel.pipeline_parallel_size > 1)
    return refuse("pipeline_parallel_size",
                  fmt::format("is {}; it", options.parallel.pipeline_parallel_size));
  if (options.lora.enabled) return refuse("enable_lora", "LoRA");
  if (options.device.type != "cpu") return refuse("device", fmt::format("is {}; it", options.device.type));
  return {};
}

// Draft heads run in the last stage, but EAGLE-3 heads read the residual of layers in all stages.
bool reads_early_layers(const EngineOptions& options) {
  const HeadOptions* head = options.speculation ? options.speculation->head() : nullptr;
  return head != nullptr && head->kind == HeadOptions::Kind::eagle3;
}

// Checks features that do not work with several ranks on GPUs yet.
Result<> check_ranks_on_gpus(const EngineOptions& options) {
  const auto refuse = [](std::string_view field, std::string_view what) {
    return field_failure(
        field, ErrorCode::unsupported,
        "{} is not supported with several ranks on GPUs: remove it, set --device cpu, or set "
        "tensor_parallel_size and pipeline_parallel_size to 1",
        what);
  };
  if (options.parallel.expert_balancing.enabled) return refuse("enable_eplb", "moving experts");
  return {};
}

}  // namespace

Result<> check_ranks(const EngineOptions& options) {
  const RankLayout layout = options.parallel.rank_layout();
  TRY_VOID(check_shared_experts(options));
  if (layout.size() % options.parallel.nodes.count != 0)
    return invalid("nnodes", "is {}, but the number of ranks, {}, must be a multiple of it",
                   options.parallel.nodes.count, layout.size());
  if (options.parallel.nodes.rank >= options.parallel.nodes.count)
    return invalid("node_rank", "must be below nnodes, {}, got {}", options.parallel.nodes.count,
                   options.parallel.nodes.rank);
  if (layout.pipeline > kStagesMax)
    return invalid("pipeline_parallel_size", "must be at most {}, got {}", kStagesMax, layout.pipeline);
  const ExpertBalancing& balancing = options.parallel.expert_balancing;
  if (balancing.enabled && (!options.parallel.enable_expert_parallel ||
                            (layout.tensor == 1 && !options.parallel.shares_experts())))
    return invalid(
        "enable_eplb",
        "needs --enable-expert-parallel and --tensor-parallel-size or --data-parallel-size of 2 or "
        "more: {}",
        options.parallel.enable_expert_parallel ? "both are 1" : "experts are not divided among ranks");
  if (balancing.redundant_experts > 0 && !balancing.enabled)
    return invalid("eplb_config", "num_redundant_experts is {}, but must be 0 without --enable-eplb",
                   balancing.redundant_experts);
  if (layout.size() == 1) return {};
  const bool stages = layout.pipeline > 1;
  const auto refuse = [&](std::string_view with) {
    return field_failure(stages ? "pipeline_parallel_size" : "tensor_parallel_size", ErrorCode::unsupported,
                         "must be 1 {}, got {}", with, stages ? layout.pipeline : layout.tensor);
  };
  if (options.device.type == "reference") return refuse("on the device reference");
  if (options.device.type == "cuda") TRY_VOID(check_ranks_on_gpus(options));
  if (options.kv_transfer.enabled && (options.parallel.mpi || options.parallel.nodes.count > 1))
    return refuse("with --kv-transfer-config over several hosts");
  if (stages && reads_early_layers(options))
    return refuse("with the method eagle3, whose head reads layers of several stages");
  if (options.parallel.data_parallel_size > 1 && (options.parallel.mpi || options.parallel.nodes.count > 1))
    return field_failure("data_parallel_size", ErrorCode::unsupported, "must be 1 with several hosts, got {}",
                         options.parallel.data_parallel_size);
  if (const int processors = usable_processors(); processors < options.parallel.ranks_of_host())
    log_warning("{} ranks are more than the {} processors", options.parallel.ranks_of_host(), processors);
  return {};
}

Ranks::Ranks(const EngineOptions& options, int rank)
    : layout_(options.parallel.rank_layout()),
      rank_(rank),
      timeout_ms_(options.parallel.nodes.timeout_s > 0 ? options.parallel.nodes.timeout_s * 1000
                  : layout_.pipeline > 1 || options.parallel.shares_experts() ? kHungStageMs
                                                                              : kHungMs),
      step_timeout_ms_(options.parallel.nodes.timeout_s > 0 ? timeout_ms_ : kHungStageMs),
      handed_on_bytes_(static_cast<std::size_t>(options.schedule.max_num_batched_tokens) * kRowBytes) {}

Ranks::~Ranks() {
  const bool failed = !groups_.status();
  groups_ = {};
  for (remote::ChildProcess& child : children_) child.stop(failed ? 0 : kEndMs);
}

Result<std::unique_ptr<Ranks>> Ranks::start(const EngineOptions& options,
                                            const std::vector<std::string>& command) {
  std::unique_ptr<Ranks> ranks(new Ranks(options, 0));
  const int size = ranks->layout_.size();
  if (command.empty() && size > 1)
    return field_failure(
        options.parallel.tensor_parallel_size > 1 ? "tensor_parallel_size" : "pipeline_parallel_size",
        ErrorCode::unsupported, "must be 1 for an engine without a separate process, got {}",
        std::max(options.parallel.tensor_parallel_size, options.parallel.pipeline_parallel_size));
  if (options.parallel.mpi || options.parallel.nodes.count > 1) {
    if (!options.parallel.mpi) TRY_VOID(ranks->start_children(options.parallel.ranks_of_host(), command, {}));
    TRY_VOID(ranks->connect(options));
    return ranks;
  }
  const HostGroupsOptions groups = ranks->on_this_host();
  TRY(ranks->memory_, SharedMemory::create(host_groups_bytes(groups)));
  const int shared[] = {ranks->memory_.fd()};
  TRY_VOID(ranks->start_children(size, command, shared));
  ranks->groups_ = host_groups(ranks->memory_.bytes(), groups);
  TRY_VOID(ranks->meet_engines(options));
  return ranks;
}

Result<std::unique_ptr<Ranks>> Ranks::join(const EngineOptions& options, int rank) {
  std::unique_ptr<Ranks> ranks(new Ranks(options, rank));
  if (rank < 1 || rank >= ranks->layout_.size())
    return invalid("run_rank", "must be 1 to {}, got {}", ranks->layout_.size() - 1, rank);
  if (options.parallel.mpi || options.parallel.nodes.count > 1) {
    TRY_VOID(ranks->connect(options));
    return ranks;
  }
  TRY(ranks->memory_, SharedMemory::open(remote::kChildSocket + 1));
  const HostGroupsOptions groups = ranks->on_this_host();
  if (ranks->memory_.bytes().size() != host_groups_bytes(groups))
    return failure(ErrorCode::corrupt, "{} bytes of shared memory", ranks->memory_.bytes().size());
  ranks->groups_ = host_groups(ranks->memory_.bytes(), groups);
  TRY_VOID(ranks->meet_engines(options));
  return ranks;
}

Result<> Ranks::start_children(int count, const std::vector<std::string>& command,
                               std::span<const int> shared) {
  for (int rank = 1; rank < count; ++rank) {
    std::vector<std::string> arguments = command;
    arguments.push_back(std::to_string(rank));
    TRY(remote::ChildProcess child, remote::ChildProcess::start(arguments, "/proc/self/exe", shared));
    children_.push_back(std::move(child));
  }
  return {};
}

HostGroupsOptions Ranks::on_this_host() {
  return {.layout = layout_,
          .rank = rank_,
          .check = [this] { return check(); },
          .spin = layout_.size() <= usable_processors(),
          .handed_on_bytes = handed_on_bytes_};
}

Result<> Ranks::connect(const EngineOptions& options) {
  if (options.parallel.mpi) {
    TRY(transport_, open_mpi_transport());
    if (transport_->size() != layout_.size())
      return invalid(
          "tensor_parallel_size",
          "times pipeline_parallel_size is {}, but mpirun has started {} processes: both must be equal",
          layout_.size(), transport_->size());
  } else {
    TRY(std::string identity, hosts_identity(options));
    TRY(transport_, TcpTransport::meet({.rank = rank_,
                                        .size = layout_.size(),
                                        .address = options.parallel.nodes.master_addr,
                                        .port = options.parallel.nodes.master_port,
                                        .identity = std::move(identity)}));
  }
  groups_ = make_groups(layout_, rank_, [&](std::size_t, const std::vector<int>& members) {
    return std::make_unique<MessageGroup>(*transport_, members);
  });
  return {};
}

Result<> Ranks::meet_engines(const EngineOptions& options) {
  if (!options.parallel.shares_experts()) return {};
  TRY(std::string identity, hosts_identity(options));
  const int size = options.parallel.nodes.expert_engines * layout_.size();
  TRY(engines_, TcpTransport::meet({.rank = (options.first_index + options.index) * layout_.size() + rank_,
                                    .size = size,
                                    .address = options.parallel.nodes.expert_address,
                                    .port = options.parallel.nodes.expert_port,
                                    .address_flag = "data_parallel_address",
                                    .identity = std::move(identity),
                                    .patience_s = kMeetEnginesS,
                                    .check = [this] { return check(); }}));
  std::vector<int> members(static_cast<std::size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  groups_.experts = std::make_unique<MessageGroup>(*engines_, std::move(members));
  return {};
}

Result<> Ranks::check() {
  if (transport_) TRY_VOID(transport_->check());
  if (rank_ > 0) {
    if (on_one_host() && is_closed(remote::kChildSocket))
      return failure(ErrorCode::unavailable, "rank 0 has stopped");
    return {};
  }
  const std::lock_guard lock(children_mutex_);
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (!is_closed(children_[i].socket.fd())) continue;
    const pid_t pid = children_[i].pid();
    return failure(ErrorCode::unavailable, "the process of rank {} ({}) has exited: {}", i + 1, pid,
                   children_[i].kill());
  }
  return {};
}

Result<> Ranks::all_succeed(const Result<>& ready) {
  const Greeting own = greeting_of(ready);
  std::vector<Greeting> all(static_cast<std::size_t>(layout_.size()));
  groups_.all->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  TRY_VOID(ready);
  TRY_VOID(groups_.all->status());
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].ready)
      return std::unexpected(
          Error{all[rank].code, fmt::format("rank {}: {}", rank, all[rank].message), all[rank].field});
  return {};
}

// After the start, ranks other than 0 wait for the next step without a time limit, because only rank 0 knows
// when it begins.
Result<> Ranks::agree(const Result<>& ready) {
  TRY_VOID(all_succeed(ready));
  // A step of one engine needs the experts of all engines, so it may start only when all are ready.
  if (groups_.experts) groups_.experts->barrier();
  TRY_VOID(groups_.status());
  for (ProcessGroup* group : groups_.list())
    if (rank_ == 0 || group != groups_.all.get()) group->set_timeout_ms(timeout_ms_);
  return {};
}

Result<std::int64_t> Ranks::least(std::int64_t own) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(layout_.size()));
  groups_.all->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  TRY_VOID(groups_.all->status());
  return std::ranges::min(all);
}

}  // namespace octavo
