#include "serve/openai/scoring_reply.h"

#include <boost/json/serialize.hpp>
#include <cmath>
#include <utility>

namespace octavo::openai {

namespace json = boost::json;

namespace {

// Returns the probability of the first label relative to the sum over all labels: 1 / sum(exp(logprob -
// first)). Returns 0 if the first label is impossible.
double share(std::span<const std::pair<TokenId, float>> labels) {
  const double first = labels.front().second;
  if (std::isinf(first)) return 0;
  double sum = 0;
  for (const auto& [id, logprob] : labels) sum += std::exp(logprob - first);
  return 1 / sum;
}

class ScoringReply final : public Reply {
 public:
  ScoringReply(ReplyOptions options, bool among_labels)
      : options_(std::move(options)), among_labels_(among_labels) {}

  // The route has no streams.
  std::string open(int, const EchoedPrompt&, const Usage*) override { return ""; }
  std::string part(const AnswerPart&, const Usage*) override { return ""; }
  std::string close(const Usage&) override { return ""; }
  std::string failed(const Error& error) override { return stream_failed(error); }

  std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt>,
                    const Usage& usage) override {
    json::array data;
    for (const AnswerPart& part : parts)
      data.push_back(json::object{{"index", part.index}, {"object", "score"}, {"score", score(part)}});
    return json::serialize(json::object{{"id", options_.id},
                                        {"object", "list"},
                                        {"created", options_.created},
                                        {"model", options_.model},
                                        {"data", std::move(data)},
                                        {"usage", usage_json(usage)}});
  }

 private:
  json::value score(const AnswerPart& part) const {
    if (part.logprobs.empty()) return nullptr;
    const std::span<const std::pair<TokenId, float>> labels = part.logprobs.front().top;
    return among_labels_ ? share(labels) : std::exp(static_cast<double>(labels.front().second));
  }

  ReplyOptions options_;
  bool among_labels_;
};

}  // namespace

std::unique_ptr<Reply> scoring_reply(ReplyOptions options, bool among_labels) {
  return std::make_unique<ScoringReply>(std::move(options), among_labels);
}

}  // namespace octavo::openai
