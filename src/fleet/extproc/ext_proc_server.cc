#include "fleet/extproc/ext_proc_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <chrono>
#include <functional>
#include <limits>
#include <vector>

#include "ext_proc.grpc.pb.h"
#include "http/self_signed.h"
#include "http/server_tls.h"

namespace octavo::fleet {
namespace {

using ext_proc::ProcessingRequest;
using ext_proc::ProcessingResponse;

// Reads a message, writes the answers to it, reads the next: one call under way at a time, so that a gateway
// that does not read is not read from. Deletes itself when the stream is done.
class Stream : public grpc::ServerBidiReactor<ProcessingRequest, ProcessingResponse> {
 public:
  explicit Stream(ProcessorContext& context) : processor_(context) { StartRead(&message_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);  // the gateway has said all, or is gone
    answers_.clear();
    written_ = 0;
    if (const auto processed = processor_.process(message_, answers_); !processed)
      return Finish(
          {grpc::StatusCode::INVALID_ARGUMENT, processed.error().field + ": " + processed.error().message});
    if (!processor_.wants_tokens()) return wait_or_write();
    processor_.render([this] {
      processor_.go_on(answers_);
      wait_or_write();
    });
  }

  void OnCancel() override { processor_.cancel(); }
  void OnWriteDone(bool ok) override { ok ? write_or_read() : Finish(grpc::Status::OK); }
  void OnDone() override { delete this; }

 private:
  void wait_or_write() {
    if (!processor_.waits()) return write_or_read();
    processor_.hold([this](FlowOutcome outcome) {
      processor_.go_on(outcome, answers_);
      write_or_read();
    });
  }

  void write_or_read() {
    if (written_ < answers_.size()) return StartWrite(&answers_[written_++]);
    if (processor_.over()) return Finish(grpc::Status::OK);
    StartRead(&message_);
  }

  Processor processor_;
  ProcessingRequest message_;
  std::vector<ProcessingResponse> answers_;
  std::size_t written_ = 0;
};

class Service : public ext_proc::ExternalProcessor::CallbackService {
 public:
  explicit Service(ProcessorContext& context) : context_(context) {}

  grpc::ServerBidiReactor<ProcessingRequest, ProcessingResponse>* Process(
      grpc::CallbackServerContext*) override {
    return new Stream(context_);
  }

 private:
  ProcessorContext& context_;
};

// Those that gateways and Kubernetes ask for.
constexpr const char* kLiveness = "liveness";
constexpr const char* kReadinessNames[] = {"", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor"};

struct Bound {
  std::unique_ptr<grpc::Server> server;
  int port = 0;

  void set_ready(bool ready) const {
    for (const char* name : kReadinessNames) server->GetHealthCheckService()->SetServingStatus(name, ready);
  }
};

Result<std::shared_ptr<grpc::ServerCredentials>> credentials_of(const std::optional<GrpcTls>& tls) {
  if (!tls) return grpc::InsecureServerCredentials();
  namespace experimental = grpc::experimental;
  const auto of = [](std::shared_ptr<experimental::CertificateProviderInterface> certificates) {
    experimental::TlsServerCredentialsOptions options(std::move(certificates));
    options.watch_identity_key_cert_pairs();
    return experimental::TlsServerCredentials(options);
  };
  if (tls->folder.empty()) {
    const http::SelfSigned made = http::make_self_signed("octavo pick", "DNS:localhost,IP:127.0.0.1");
    return of(std::make_shared<experimental::StaticDataCertificateProvider>(
        std::vector<experimental::IdentityKeyCertPair>{{made.key, made.certificate}}));
  }
  const std::string certificate = tls->folder + "/tls.crt", key = tls->folder + "/tls.key";
  // gRPC would say nothing of what is wrong with them.
  if (const auto read = http::ServerTls::load({.certfile = certificate, .keyfile = key}); !read)
    return field_failure("cert-path", read.error().code, "{}", read.error().message);
  constexpr unsigned kLookSeconds = 1, kNeverSeconds = std::numeric_limits<int>::max();
  return of(std::make_shared<experimental::FileWatcherCertificateProvider>(
      key, certificate, tls->refresh ? kLookSeconds : kNeverSeconds));
}

Result<Bound> listen_on(const GrpcOptions& options, std::uint16_t port, std::string_view field,
                        std::shared_ptr<grpc::ServerCredentials> credentials,
                        const std::function<void(grpc::ServerBuilder&)>& add_service) {
  Bound bound;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(fmt::format("{}:{}", options.host, port), std::move(credentials), &bound.port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a port that is taken is an error
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.message_bytes_max));
  add_service(builder);
  bound.server = builder.BuildAndStart();
  if (!bound.server || bound.port == 0)
    return field_failure(field, ErrorCode::io, "cannot listen on {}:{}", options.host, port);
  bound.server->GetHealthCheckService()->SetServingStatus(kLiveness, true);
  bound.set_ready(true);
  return bound;
}

}  // namespace

struct ExtProcServer::State {
  explicit State(ProcessorContext& c) : context(c), service(c) {}

  ProcessorContext& context;
  Service service;
  grpc::CallbackGenericService nothing;  // gRPC starts no server without a service of one's own
  Bound main, health;
};

Result<std::unique_ptr<ExtProcServer>> ExtProcServer::start(const GrpcOptions& options,
                                                            ProcessorContext& context) {
  grpc::EnableDefaultHealthCheckService(true);
  auto state = std::make_unique<State>(context);
  TRY(auto credentials, credentials_of(options.tls));
  TRY(state->main,
      listen_on(options, options.port, "grpc-port", std::move(credentials),
                [&](grpc::ServerBuilder& builder) { builder.RegisterService(&state->service); }));
  TRY(state->health, listen_on(options, options.health_port, "grpc-health-port",
                               grpc::InsecureServerCredentials(), [&](grpc::ServerBuilder& builder) {
                                 builder.RegisterCallbackGenericService(&state->nothing);
                               }));
  return std::unique_ptr<ExtProcServer>(new ExtProcServer(std::move(state)));
}

ExtProcServer::ExtProcServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
ExtProcServer::~ExtProcServer() { stop(0); }

std::uint16_t ExtProcServer::port() const { return static_cast<std::uint16_t>(state_->main.port); }
std::uint16_t ExtProcServer::health_port() const { return static_cast<std::uint16_t>(state_->health.port); }

void ExtProcServer::set_ready(bool ready) {
  state_->main.set_ready(ready);
  state_->health.set_ready(ready);
}

void ExtProcServer::stop(int grace_ms) {
  for (const Bound* bound : {&state_->main, &state_->health})
    if (auto* health = bound->server->GetHealthCheckService()) health->SetServingStatus(false);
  if (state_->context.gate) state_->context.gate->stop();
  state_->main.server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(grace_ms));
  state_->health.server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace octavo::fleet
