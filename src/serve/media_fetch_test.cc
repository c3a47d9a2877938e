#include "serve/media_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"
#include "http/server.h"

namespace octavo {
namespace {

using testing::HasSubstr;

std::string error_of(const MediaSources& sources, const std::string& url) {
  const auto bytes = fetch_media(sources, url);
  return bytes ? "nothing, but " + *bytes : bytes.error().message;
}

class MediaFetch : public testing::Test {
 protected:
  // The paths are /body, /missing and /large. /to?URL redirects to URL.
  std::unique_ptr<http::Server> server_ =
      http::Server::start({}, [](const std::shared_ptr<http::Exchange>& exchange) {
        const std::string& path = exchange->request().path;
        if (path == "/body") return exchange->respond({.body = "pixels"});
        if (path == "/missing") return exchange->respond({.status = 404, .body = "no"});
        if (path == "/large")
          return exchange->respond({.body = std::string(MediaSources::kBytesMax + 1, ' ')});
        http::Response response{.status = 302};
        response.headers.add("Location", path == "/loop" ? "/loop" : exchange->request().query);
        exchange->respond(std::move(response));
      }).value();
  std::string at(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(server_->port()) + path;
  }
  const MediaSources allowed_{.domains = {"example.org", "127.0.0.1"}};
};

TEST_F(MediaFetch, BringsWhatAllowedHostsHave) {
  EXPECT_EQ(fetch_media(allowed_, at("/body")).value(), "pixels");
  EXPECT_EQ(fetch_media(allowed_, at("/to?/body")).value(), "pixels");
}

TEST_F(MediaFetch, NothingElse) {
  const std::string port = std::to_string(server_->port());
  for (const std::string host : {"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0.0.0.0"})
    EXPECT_THAT(error_of({}, "http://" + host + ":" + port + "/body"),
                HasSubstr("has no public address: start the server with --allowed-media-domains"));
  EXPECT_THAT(error_of({.domains = {"example.org"}}, at("/body")),
              HasSubstr("127.0.0.1 is not in --allowed-media-domains"));
  EXPECT_THAT(error_of(allowed_, at("/to?http://169.254.169.254/secret")),
              HasSubstr("169.254.169.254 is not in --allowed-media-domains"));
  EXPECT_THAT(error_of(allowed_, at("/missing")), HasSubstr("127.0.0.1 returned status 404"));
  EXPECT_THAT(error_of(allowed_, at("/loop")), HasSubstr("redirects more than 3 times"));
  EXPECT_THAT(error_of(allowed_, at("/large")), HasSubstr("body limit exceeded"));
  EXPECT_THAT(error_of(allowed_, "http://127.0.0.1:1/body"), HasSubstr("cannot be downloaded"));
}

TEST_F(MediaFetch, FilesBelowTheFolderAlone) {
  const ScratchDirectory scratch;
  const std::filesystem::path root = scratch.path() / "media";
  std::filesystem::create_directories(root / "inner");
  std::ofstream(root / "inner/a picture.png") << "pixels";
  std::ofstream(scratch.path() / "secret") << "secret";
  std::filesystem::create_symlink(scratch.path() / "secret", root / "link");
  const MediaSources sources{.local_path = root};
  const std::string base = "file://" + root.string();
  EXPECT_EQ(fetch_media(sources, base + "/inner/a%20picture.png").value(), "pixels");
  EXPECT_EQ(fetch_media(sources, "file://localhost" + root.string() + "/inner/a%20picture.png").value(),
            "pixels");
  for (const char* other : {"/link", "/../secret", "/inner", "/inner/none.png", ""})
    EXPECT_THAT(error_of(sources, base + other), HasSubstr("does not contain this file")) << other;
  EXPECT_THAT(error_of({}, base + "/inner/a%20picture.png"),
              HasSubstr("need a server with --allowed-local-media-path"));
  EXPECT_THAT(error_of(sources, "file:inner"), HasSubstr("must be file:///path"));
}

TEST_F(MediaFetch, ErrorsNameThePart) {
  std::vector<openai::ChatPrompt::Media> media{{.field = "a", .url = "data:image/png;base64,AAAA"},
                                               {.field = "b", .url = at("/body")},
                                               {.field = "c", .url = at("/missing")}};
  EXPECT_EQ(fetch_all(allowed_, media).error().field, "c");
  media.pop_back();
  ASSERT_TRUE(fetch_all(allowed_, media).has_value());
  EXPECT_FALSE(media[0].bytes);
  EXPECT_EQ(media[1].bytes, "pixels");
}

}  // namespace
}  // namespace octavo
