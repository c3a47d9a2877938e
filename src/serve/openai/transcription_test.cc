// Tests /v1/audio/transcriptions over HTTP, with a scripted engine and the tokenizer of
// tests/data/sound/whisper.
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "media/testing/golden.h"
#include "serve/openai/transcription_reply.h"
#include "serve/serve_fixture.h"
#include "serve/sound_rules.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr TokenId kEnd = 256, kBegin = 257, kGerman = 260, kTranslate = 262, kTranscribe = 263,
                  kPrevious = 265, kNoTimes = 267, kTimes = 268;
constexpr std::string_view kPath = "/v1/audio/transcriptions";

using FormFields = std::vector<std::pair<std::string, std::string>>;

class TranscriptionTest : public ServeTest {
 protected:
  TranscriptionTest() { tokenizer_ = Tokenizer::load(std::string(media::kSoundRoot) + "whisper").value(); }

  void serve_sound(FakeEngine::ScriptOf script, bool english = false) {
    serve(
        [this, script = std::move(script)](const Request& request, int index) {
          requests_.push_back(request);
          return script(request, index);
        },
        [&](ServeOptions& options, http::ServerOptions&) {
          engine_->described.sound = {.mels = 80, .frames = 200, .slots = 4};
          options.rules.limits.vocab_size = 372;
          options.rules.max_model_len = 90;
          options.eos_ids = {kEnd};
          options.media.transcription = sound_rules(tokenizer_, {.mels = 80, .seconds = 2}, english).value();
          options.media.transcription->suppress = {1, 2};
          options.media.transcription->begin_suppress = {220};
        });
  }
  // The engine answers the request for the language with German, and others with these tokens.
  void serve_tokens(std::vector<TokenId> tokens, bool english = false) {
    serve_sound(
        [tokens](const Request& request, int) {
          if (!request.sampling.tokens.allowed_token_ids.empty()) return Script{.tokens = {kGerman}};
          return Script{.tokens = tokens};
        },
        english);
  }

  static std::string chirp() { return media::file_bytes(std::string(media::kSoundRoot) + "chirp.wav"); }
  // Returns the chirp, repeated to 5.2 seconds.
  static std::string long_chirp() {
    std::string file = chirp();
    const std::string samples = file.substr(44);
    for (int i = 0; i < 3; ++i) file += samples;
    const auto size = static_cast<std::uint32_t>(file.size() - 44);
    std::memcpy(file.data() + 40, &size, 4);
    return file;
  }

  http::Response ask(FormFields fields, const std::string& file, std::string_view path = kPath) {
    std::string body;
    for (const auto& [name, value] : fields)
      body += fmt::format("--X\r\nContent-Disposition: form-data; name=\"{}\"\r\n\r\n{}\r\n", name, value);
    if (!file.empty())
      body += fmt::format(
          "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n{}\r\n", file);
    body += "--X--\r\n";
    return client()
        .request("POST", path, body, {{"Content-Type", "multipart/form-data; boundary=X"}})
        .value();
  }
  json::object answer(FormFields fields, const std::string& file, std::string_view path = kPath) {
    const http::Response response = ask(std::move(fields), file, path);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body).as_object();
  }
  std::string error(FormFields fields, const std::string& file, int status = 400,
                    std::string_view path = kPath) {
    const http::Response response = ask(std::move(fields), file, path);
    EXPECT_EQ(response.status, status) << response.body;
    return std::string(json::parse(response.body).at("error").at("message").as_string());
  }

  std::vector<TokenId> ids_of(std::string_view text) const { return tokenizer_.encode(text, false).value(); }

  // Returns the token of a letter: A for the first request, B for the second, and so on.
  TokenId number_of_request() const { return ids_of("A")[0] + static_cast<TokenId>(requests_.size()) - 1; }

  std::vector<Request> requests_;
};

std::vector<TokenId> operator+(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(TranscriptionTest, SoundBecomesText) {
  serve_tokens(ids_of(" Guten Tag") + std::vector<TokenId>{kEnd});
  const json::object reply = answer({{"model", "demo"}, {"language", "de"}}, chirp());
  EXPECT_EQ(json::serialize(reply), R"({"text":"Guten Tag","usage":{"type":"duration","seconds":2}})");
  ASSERT_EQ(requests_.size(), 1U);
  const Request& request = requests_[0];
  EXPECT_THAT(request.prompt, ElementsAre(kBegin, kGerman, kTranscribe, kNoTimes));
  EXPECT_EQ(request.sampling.temperature, 0);
  EXPECT_THAT(request.sampling.tokens.bad_word_ids, ElementsAre(ElementsAre(1), ElementsAre(2)));
  EXPECT_THAT(request.sampling.tokens.begin_suppress_tokens, ElementsAre(220));
  EXPECT_EQ(request.sampling.max_tokens, 86);
  ASSERT_EQ(request.media.size(), 1U);
  const auto mel = media::VisionGolden("whisper", media::kSoundRoot).values<float>("mel");
  ASSERT_EQ(request.media[0].bytes.size(), mel.size() * 4);
  for (std::size_t i = 0; i < mel.size(); ++i) {
    float own = 0;
    std::memcpy(&own, request.media[0].bytes.data() + 4 * i, 4);
    ASSERT_NEAR(own, mel[i], 1e-5) << i;
  }
}

TEST_F(TranscriptionTest, LanguageIsFound) {
  serve_tokens(ids_of("i") + std::vector<TokenId>{kEnd});
  answer({}, chirp());
  ASSERT_EQ(requests_.size(), 2U);
  EXPECT_THAT(requests_[0].prompt, ElementsAre(kBegin));
  EXPECT_THAT(requests_[0].sampling.tokens.allowed_token_ids, ElementsAre(258, 259, 260, 261));
  EXPECT_THAT(requests_[1].prompt, ElementsAre(kBegin, kGerman, kTranscribe, kNoTimes));
  EXPECT_EQ(requests_[0].media[0].digest, requests_[1].media[0].digest);
}

TEST_F(TranscriptionTest, Translations) {
  serve_tokens(ids_of("I") + std::vector<TokenId>{kEnd});
  const json::object reply = answer({{"language", "de"}}, chirp(), "/v1/audio/translations");
  EXPECT_EQ(json::serialize(reply), R"({"text":"I"})");
  EXPECT_THAT(requests_[0].prompt, ElementsAre(kBegin, kGerman, kTranslate, kNoTimes));
}

TEST_F(TranscriptionTest, PromptsComeBefore) {
  serve_tokens(ids_of("I") + std::vector<TokenId>{kEnd});
  answer({{"language", "de"}, {"prompt", " Ab "}}, chirp());
  EXPECT_EQ(requests_[0].prompt, std::vector<TokenId>{kPrevious} + ids_of(" Ab") +
                                     std::vector<TokenId>({kBegin, kGerman, kTranscribe, kNoTimes}));
  // Only the last tokens of the prompt are used.
  answer({{"language", "de"}, {"prompt", std::string(300, 'a')}}, chirp());
  EXPECT_EQ(requests_[1].prompt.size(), 1U + 44 + 4);
  EXPECT_THAT(error({{"language", "de"}, {"prompt", "<|endoftext|>"}}, chirp()), HasSubstr("special tokens"));
}

TEST_F(TranscriptionTest, LongSoundIsCutIntoWindows) {
  serve_sound([this](const Request&, int) { return Script{.tokens = {220, number_of_request(), kEnd}}; });
  const json::object reply = answer({{"language", "en"}}, long_chirp());
  EXPECT_EQ(reply.at("usage").at("seconds"), 6);
  EXPECT_EQ(requests_.size(), 4U);  // 4 windows of at most 2 seconds, cut at quiet moments
  EXPECT_EQ(reply.at("text"), "A B C D");
}

TEST_F(TranscriptionTest, SegmentsHaveTimes) {
  serve_tokens(ids_of(" One") + std::vector<TokenId>{kTimes + 50, kTimes + 60} + ids_of(" two") +
               std::vector<TokenId>{kEnd});
  const json::object reply = answer(
      {{"language", "en"}, {"response_format", "verbose_json"}, {"timestamp_granularities[]", "segment"}},
      chirp());
  EXPECT_EQ(requests_[0].prompt.back(), kTimes);
  EXPECT_EQ(reply.at("text"), "One two");
  EXPECT_EQ(reply.at("task"), "transcribe");
  EXPECT_EQ(reply.at("language"), "en");
  EXPECT_DOUBLE_EQ(reply.at("duration").as_double(), 1.3);
  const json::array& segments = reply.at("segments").as_array();
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(segments[0].at("text"), " One");
  EXPECT_EQ(segments[0].at("start").as_double(), 0);
  EXPECT_EQ(segments[0].at("end").as_double(), 1);
  EXPECT_DOUBLE_EQ(segments[1].at("start").as_double(), 1.2);
  EXPECT_DOUBLE_EQ(segments[1].at("end").as_double(), 1.3);
  EXPECT_EQ(segments[1].at("id"), 1);
  EXPECT_EQ(segments[1].at("tokens").as_array().size(), 4U);
  EXPECT_LT(segments[0].at("avg_logprob").as_double(), 0);

  EXPECT_EQ(ask({{"language", "en"}, {"response_format", "srt"}}, chirp()).body,
            "1\n00:00:00,000 --> 00:00:01,000\nOne\n\n2\n00:00:01,200 --> 00:00:01,300\ntwo\n\n");
  const http::Response vtt = ask({{"language", "en"}, {"response_format", "vtt"}}, chirp());
  EXPECT_EQ(vtt.body,
            "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nOne\n\n00:00:01.200 --> 00:00:01.300\ntwo\n\n");
  EXPECT_EQ(vtt.content_type, "text/plain; charset=utf-8");
}

TEST_F(TranscriptionTest, SubtitlesHaveNoArrowInTheirText) {
  serve_tokens(ids_of(" A--->B") + std::vector<TokenId>{kEnd});
  EXPECT_EQ(ask({{"language", "en"}, {"response_format", "srt"}}, chirp()).body,
            "1\n00:00:00,000 --> 00:00:01,300\nA->B\n\n");
}

TEST_F(TranscriptionTest, TextIsPlain) {
  serve_tokens(ids_of("I") + std::vector<TokenId>{kEnd});
  const http::Response response = ask({{"language", "en"}, {"response_format", "text"}}, chirp());
  EXPECT_EQ(response.body, "I\n");
  EXPECT_EQ(response.content_type, "text/plain; charset=utf-8");
}

TEST_F(TranscriptionTest, StreamsWindowsInOrder) {
  serve_sound([this](const Request&, int) {
    return Script{.tokens = {220, number_of_request(), ids_of("a")[0], kEnd}};
  });
  const http::Response response =
      ask({{"language", "en"}, {"stream", "true"}, {"stream_include_usage", "true"}}, long_chirp());
  const std::vector<std::string> all = events(response);
  ASSERT_GE(all.size(), 3U);
  EXPECT_EQ(all.back(), "[DONE]");
  std::string text;
  int ends = 0;
  for (const std::string& event : std::span(all).first(all.size() - 2)) {
    const json::object chunk = json::parse(event).as_object();
    EXPECT_EQ(chunk.at("object"), "transcription.chunk");
    EXPECT_THAT(std::string(chunk.at("id").as_string()), testing::StartsWith("transcribe-"));
    const json::object& choice = chunk.at("choices").at(0).as_object();
    text += choice.at("delta").at("content").as_string();
    ends += choice.contains("finish_reason");
  }
  EXPECT_EQ(ends, 4);
  EXPECT_EQ(text, "Aa Ba Ca Da");
  const json::object last = json::parse(all[all.size() - 2]).as_object();
  EXPECT_TRUE(last.at("choices").as_array().empty());
  EXPECT_EQ(last.at("usage").at("prompt_tokens"), 4 * 4 + 520);
  EXPECT_EQ(last.at("usage").at("completion_tokens"), 4 * 4);
}

TEST_F(TranscriptionTest, EnglishModelsHaveNoLanguages) {
  serve_tokens(ids_of("I") + std::vector<TokenId>{kEnd}, true);
  answer({}, chirp());
  EXPECT_THAT(requests_[0].prompt, ElementsAre(kBegin, kNoTimes));
  answer({{"language", "en"}}, chirp());
  EXPECT_THAT(error({{"language", "de"}}, chirp()), HasSubstr("must be en"));
  EXPECT_THAT(error({}, chirp(), 400, "/v1/audio/translations"), HasSubstr("and cannot translate"));
}

TEST_F(TranscriptionTest, BadRequestsNameTheirField) {
  serve_tokens(ids_of("I") + std::vector<TokenId>{kEnd});
  EXPECT_THAT(error({}, ""), HasSubstr("file: is missing"));
  EXPECT_THAT(error({{"file", "text"}}, ""), HasSubstr("file: must be a file"));
  EXPECT_THAT(error({}, "not a sound"), HasSubstr("file: Invalid or corrupted audio data"));
  EXPECT_THAT(error({{"language", "xx"}}, chirp()), HasSubstr("language: must be one of en, zh, de, es"));
  EXPECT_THAT(error({{"response_format", "xml"}}, chirp()), HasSubstr("response_format: must be json"));
  EXPECT_THAT(error({{"response_format", "srt"}, {"stream", "true"}}, chirp()),
              HasSubstr("the format srt cannot be streamed"));
  EXPECT_THAT(error({{"stream_include_usage", "true"}}, chirp()), HasSubstr("needs stream"));
  EXPECT_THAT(error({{"timestamp_granularities[]", "segment"}}, chirp()), HasSubstr("needs response_format"));
  EXPECT_THAT(error({{"timestamp_granularities[]", "word"}}, chirp()),
              HasSubstr("word timestamps are not supported"));
  EXPECT_THAT(error({{"temperature", "hot"}}, chirp()), HasSubstr("temperature: must be a number"));
  EXPECT_THAT(error({{"temperature", "3"}}, chirp()), HasSubstr("temperature"));
  EXPECT_THAT(error({{"n", "0"}}, chirp()), HasSubstr("n: must be"));
  EXPECT_THAT(error({{"use_beam_search", "true"}, {"stream", "true"}}, chirp()),
              HasSubstr("stream: Streaming is not currently supported with beam search"));
  EXPECT_THAT(error({{"length_penalty", "17"}}, chirp()), HasSubstr("length_penalty: must be in [-16, 16]"));
  EXPECT_THAT(error({{"response_format", "diarized_json"}}, chirp()), HasSubstr("names the speakers"));
  EXPECT_THAT(error({{"watermarking", "true"}}, chirp()), HasSubstr("watermarking is not supported"));
  EXPECT_THAT(error({{"language", "de"}, {"max_completion_tokens", "91"}}, chirp()),
              HasSubstr("exceed context limit: 4 + 91 > 90"));
  EXPECT_THAT(error({{"model", "other"}}, chirp(), 404), HasSubstr("does not exist"));
  EXPECT_EQ(client().post_json(std::string(kPath), "{}").value().status, 415);
  EXPECT_TRUE(requests_.empty());
}

TEST_F(TranscriptionTest, FieldsWithoutEffectAreTaken) {
  serve_tokens(ids_of("I") + std::vector<TokenId>{kEnd});
  const json::object reply = answer({{"language", "en"},
                                     {"n", "2"},
                                     {"length_penalty", "2"},
                                     {"hotwords", "Octavo"},
                                     {"vllm_xargs", R"({"a": 1})"},
                                     {"watermarking", "false"},
                                     {"include_stop_str_in_output", "true"},
                                     {"chunking_strategy", "auto"}},
                                    chirp());
  EXPECT_EQ(reply.at("text"), "I");
  EXPECT_EQ(requests_.size(), 1U);
}

TEST_F(TranscriptionTest, BeamsReturnTheBestTextOfEachWindow) {
  const TokenId letter = ids_of("a")[0];
  serve_sound([=](const Request& request, int) {
    EXPECT_EQ(request.sampling.logprobs.output, 4);  // 2 candidates for each of 2 beams
    return Script{.tokens = {request.prompt.size() > 4 ? kEnd : letter}, .end = FinishReason::length};
  });
  const json::object reply = answer(
      {{"language", "en"}, {"use_beam_search", "true"}, {"n", "2"}, {"length_penalty", "0"}}, long_chirp());
  EXPECT_EQ(reply.at("text"), "a a a a");
  EXPECT_EQ(requests_.size(), 4U * (1 + 2));
  for (const Request& request : requests_) EXPECT_EQ(request.media.size(), 1U);
}

TEST_F(TranscriptionTest, RoutesForTextAreNotFound) {
  serve_tokens({});
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"}) {
    const http::Response response = client().post_json(path, "{}").value();
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_THAT(response.body, HasSubstr("the model demo only transcribes sound"));
  }
}

TEST_F(TranscriptionTest, OtherModelsDoNotHear) {
  serve_text("x");
  EXPECT_THAT(error({}, chirp(), 404), HasSubstr("the model demo cannot transcribe sound"));
}

TEST(CompressionRatio, IsThatOfPythonsZlib) {
  EXPECT_DOUBLE_EQ(openai::compression_ratio("abababababababababab"), 20.0 / 12);
  EXPECT_DOUBLE_EQ(openai::compression_ratio(""), 0);
}

// OpenAI's checkpoints on the Hub had such tokenizers until September 2023.
TEST(SoundRules, TokenizersMayLackTheTokensOfTimes) {
  boost::json::value file =
      boost::json::parse(media::file_bytes(std::string(media::kSoundRoot) + "whisper/tokenizer.json"));
  boost::json::array& added = file.at("added_tokens").as_array();
  const auto id_of = [](const boost::json::value& token) { return token.at("id").as_int64(); };
  added.erase(std::ranges::find(added, kTimes, id_of), added.end());
  const Tokenizer tokenizer = Tokenizer::parse(boost::json::serialize(file)).value();
  EXPECT_EQ(tokenizer.id_of("<|0.00|>"), std::nullopt);
  EXPECT_EQ(sound_rules(tokenizer, {.mels = 80, .seconds = 2}, false).value().first_time, kTimes);
}

}  // namespace
}  // namespace octavo
