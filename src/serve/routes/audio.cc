// /v1/audio/transcriptions and /v1/audio/translations.
#include <atomic>
#include <utility>

#include "base/out_of_memory.h"
#include "http/form.h"
#include "openai/errors.h"
#include "serve/routes/handlers.h"
#include "serve/transcription.h"

namespace octavo::routes {

namespace {

Result<> transcribe_known(const ServicePtr& service, const ExchangePtr& exchange,
                          openai::TranscriptionRequest request, DecodedSound sound) {
  TRY(GenerationPlan plan, prepare_transcription(*service, std::move(request), std::move(sound)));
  return start(service, exchange, std::move(plan));
}

// Receives the token of the audio's language, then starts the transcription.
class LanguageFinder final : public OutputSink {
 public:
  LanguageFinder(ServicePtr service, ExchangePtr exchange, openai::TranscriptionRequest request,
                 DecodedSound sound, Admission::Ticket ticket)
      : service_(std::move(service)),
        exchange_(std::move(exchange)),
        request_(std::move(request)),
        sound_(std::move(sound)),
        ticket_(std::move(ticket)) {}

  static Result<> start(const ServicePtr& service, const ExchangePtr& exchange,
                        openai::TranscriptionRequest request, DecodedSound sound) {
    Request detection = language_request(*service, sound);
    const Price price{.answers = 1, .bytes = 2 * std::ssize(detection.media[0].bytes)};
    TRY(Admission::Ticket ticket, service->admission.admit(client_of(*service, exchange->request()), price));
    const auto finder = std::make_shared<LanguageFinder>(service, exchange, std::move(request),
                                                         std::move(sound), std::move(ticket));
    finder->self_ = finder;
    exchange->on_close([weak = finder->self_](http::CloseReason) {
      if (const auto left = weak.lock()) left->cancel();
    });
    TRY(const RequestId id, service->engine.submit(std::move(detection), finder));
    finder->id_ = id;
    if (finder->cancelled_) service->engine.abort(id);
    return {};
  }

  void deliver(Output&& output) noexcept override {
    if (!output.token_ids.empty()) token_ = output.token_ids[0];
    if (!output.finished) return;
    error_ = std::move(output.error);
    if (!service_->intake.try_post([self = self_.lock()] { self->go_on(); }))
      exchange_->respond(openai::error_response(
          {ErrorCode::unavailable, "too many requests wait to be parsed: retry later", ""}));
  }

 private:
  void cancel() {
    cancelled_ = true;
    if (const RequestId id = id_; id != 0) service_->engine.abort(id);
  }

  void go_on() {
    ticket_ = {};
    const auto done = within_memory([&]() -> Result<> {
      if (error_) return std::unexpected(*error_);
      for (const auto& [code, id] : service_->options.media.transcription->languages)
        if (id == token_) request_.language = code;
      if (request_.language.empty())
        return failure(ErrorCode::unavailable,
                       "the server cannot detect the language of the audio: set the field `language`");
      return transcribe_known(service_, exchange_, std::move(request_), std::move(sound_));
    });
    if (!done) exchange_->respond(openai::error_response(done.error()));
  }

  const ServicePtr service_;
  const ExchangePtr exchange_;
  openai::TranscriptionRequest request_;
  DecodedSound sound_;
  Admission::Ticket ticket_;
  std::weak_ptr<LanguageFinder> self_;
  std::atomic<RequestId> id_ = 0;  // engine's id of the request; 0: not assigned yet
  std::atomic<bool> cancelled_ = false;
  TokenId token_ = -1;
  std::optional<Error> error_;
};

Result<> transcribe(const ServicePtr& service, const ExchangePtr& exchange, bool translate) {
  if (!service->options.media.transcription)
    return field_failure("model", ErrorCode::not_found, "the model {} cannot transcribe sound",
                         service->options.rules.model_names.front());
  const std::string body = exchange->take_body();
  TRY(const std::vector<http::FormPart> form,
      http::parse_form(exchange->request().headers.find("Content-Type").value_or(""), body));
  TRY(openai::TranscriptionRequest request,
      openai::parse_transcription_request(form, translate, service->options.rules));
  TRY_VOID(check_transcription(*service, request));
  TRY_VOID(read_headers(exchange->request(), request.generation));
  TRY(DecodedSound sound, read_sound(*service, request.file));
  request.file = {};
  if (!request.language.empty() || service->options.media.transcription->languages.empty())
    return transcribe_known(service, exchange, std::move(request), std::move(sound));
  return LanguageFinder::start(service, exchange, std::move(request), std::move(sound));
}

}  // namespace

Result<> transcriptions(const ServicePtr& service, const ExchangePtr& exchange) {
  return transcribe(service, exchange, false);
}

Result<> translations(const ServicePtr& service, const ExchangePtr& exchange) {
  return transcribe(service, exchange, true);
}

}  // namespace octavo::routes
