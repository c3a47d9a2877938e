#include "fleet/pick/ext_proc_server.h"

#include <google/protobuf/message_lite.h>

#include <vector>

#include "ext_proc.pb.h"
#include "grpc/health.h"
#include "grpc/server.h"

namespace octavo::fleet {
namespace {

using ext_proc::ProcessingRequest;
using ext_proc::ProcessingResponse;

constexpr const char* kProcess = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";
// threads of the server; a gateway opens one connection for each thread of the gateway
constexpr int kThreads = 2;

class Stream : public grpc::Receiver, public std::enable_shared_from_this<Stream> {
 public:
  Stream(ProcessorContext& context, std::shared_ptr<grpc::Call> call)
      : processor_(context, call->traceparent()), call_(std::move(call)) {}

  bool message(std::string_view bytes) override {
    if (!message_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      call_->finish(grpc::Status::invalid_argument, "the message is not a ProcessingRequest");
      return false;
    }
    if (const auto processed = processor_.process(message_, answers_); !processed) {
      call_->finish(grpc::Status::invalid_argument,
                    processed.error().field + ": " + processed.error().message);
      return false;
    }
    const bool waits = processor_.waits();
    waits ? wait() : send();
    return !waits;
  }

  void half_closed() override { call_->finish(grpc::Status::ok); }
  void disconnected() override { processor_.cancel(); }

 private:
  // Waits until FlowGate dispatches the request. Continues on the thread that dispatches it, so that the
  // request is booked before FlowGate considers the next request.
  void wait() {
    processor_.wait([self = shared_from_this()] {
      self->processor_.go_on(self->answers_);
      if (self->processor_.waits()) return self->wait();
      self->call_->post([self] {
        self->send();
        self->call_->resume();
      });
    });
  }

  void send() {
    for (const ProcessingResponse& answer : answers_) {
      const std::size_t bytes = answer.ByteSizeLong();
      answer.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(call_->send(bytes)));
    }
    answers_.clear();
    if (processor_.over()) call_->finish(grpc::Status::ok);
    if (processor_.begins())
      processor_.evictable([stream = weak_from_this()] {
        if (const auto self = stream.lock()) self->evict();
      });
  }

  // Thread-safe.
  void evict() {
    call_->post([self = shared_from_this()] {
      self->processor_.evict(self->answers_);
      self->send();
    });
  }

  Processor processor_;
  const std::shared_ptr<grpc::Call> call_;
  ProcessingRequest message_;
  std::vector<ProcessingResponse> answers_;
};

// Service names that gateways and Kubernetes use in health checks.
constexpr const char* kLiveness = "liveness";
constexpr const char* kReadinessNames[] = {"", "readiness",
                                           "inference-extension",  // in llm-d's charts
                                           "envoy.service.ext_proc.v3.ExternalProcessor"};

std::size_t message_bytes_max(const GrpcOptions& options, const ProcessorContext& context) {
  constexpr std::uint64_t kBesideBody = 1 << 20;  // maximum bytes of headers and metadata
  return options.message_bytes_max > 0 ? options.message_bytes_max
                                       : context.options.body_bytes_max + kBesideBody;
}

Result<std::shared_ptr<http::ServerTls>> certificates(const std::optional<GrpcTls>& tls) {
  if (!tls) return nullptr;
  http::TlsOptions options{.self_signed = tls->folder.empty(), .http2 = true};
  if (!options.self_signed) {
    options.certfile = tls->folder + "/tls.crt";
    options.keyfile = tls->folder + "/tls.key";
    options.refresh = tls->refresh;
  }
  auto loaded = http::ServerTls::load(std::move(options));
  if (!loaded) return field_failure("cert-path", loaded.error().code, "{}", loaded.error().message);
  return *std::move(loaded);
}

}  // namespace

struct ExtProcServer::State {
  explicit State(ProcessorContext& c) : context(c) {
    health.set(kLiveness, true);
    set_ready(true);
  }
  void set_ready(bool ready) {
    for (const char* name : kReadinessNames) health.set(name, ready);
  }

  ProcessorContext& context;
  grpc::Health health;
  std::unique_ptr<grpc::Server> streams, checks;
};

Result<std::unique_ptr<ExtProcServer>> ExtProcServer::start(const GrpcOptions& options,
                                                            ProcessorContext& context) {
  auto state = std::make_unique<State>(context);
  grpc::Methods methods{{std::string(grpc::kHealthCheck), grpc::health_check(state->health)}};
  grpc::ServerOptions checks{.host = options.host, .port = options.health_port, .field = "grpc-health-port"};
  grpc::ServerOptions streams{.host = options.host,
                              .port = options.port,
                              .field = "grpc-port",
                              .message_bytes_max = message_bytes_max(options, context),
                              .threads = kThreads};
  TRY(streams.tls, certificates(options.tls));
  TRY(state->checks, grpc::Server::start(std::move(checks), methods));
  methods.emplace(kProcess, [&context](std::shared_ptr<grpc::Call> call) {
    return std::make_shared<Stream>(context, std::move(call));
  });
  TRY(state->streams, grpc::Server::start(std::move(streams), std::move(methods)));
  return std::unique_ptr<ExtProcServer>(new ExtProcServer(std::move(state)));
}

ExtProcServer::ExtProcServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
ExtProcServer::~ExtProcServer() { stop(0); }

std::uint16_t ExtProcServer::port() const { return state_->streams->port(); }
std::uint16_t ExtProcServer::health_port() const { return state_->checks->port(); }

void ExtProcServer::set_ready(bool ready) { state_->set_ready(ready); }

void ExtProcServer::stop(int grace_ms) {
  state_->health.stop();
  if (state_->context.gate) state_->context.gate->stop();
  state_->streams->stop(grace_ms);
  state_->checks->stop(0);
}

}  // namespace octavo::fleet
