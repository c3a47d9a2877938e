// /openapi.json must describe exactly the routes of the server.
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <set>
#include <string>

#include "serve/routes/routes.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

std::set<std::string> document_paths(const json::value& document) {
  std::set<std::string> paths;
  for (const auto& [path, item] : document.at("paths").as_object()) {
    const std::string text = path;
    paths.insert(text.substr(0, text.find('{')));
  }
  return paths;
}

void collect_references(const json::value& value, std::set<std::string>& out) {
  if (const json::object* object = value.if_object())
    for (const auto& [key, item] : *object) {
      if (key == "$ref") out.insert(std::string(item.as_string()));
      collect_references(item, out);
    }
  if (const json::array* array = value.if_array())
    for (const json::value& item : *array) collect_references(item, out);
}

TEST_F(ServeTest, ApiDocumentHasEveryRoute) {
  for (const bool all : {false, true}) {
    ServeOptions kept;
    serve({}, [&](ServeOptions& options, http::ServerOptions&) {
      options.features.dev_mode = options.features.change_adapters = options.features.profiles = all;
      kept = options;
    });
    const http::Response response = client().get("/openapi.json").value();
    ASSERT_EQ(response.status, 200);
    std::set<std::string> paths;
    for (const std::string_view path : route_paths(kept)) paths.emplace(path);
    EXPECT_EQ(document_paths(json::parse(response.body)), paths);
  }
}

TEST_F(ServeTest, ApiDocumentRefersToWhatItHas) {
  serve_text("x");
  const json::value document = json::parse(client().get("/openapi.json").value().body);
  std::set<std::string> references;
  collect_references(document, references);
  EXPECT_GT(references.size(), 20U);
  for (const std::string& reference : references) {
    boost::system::error_code error;
    EXPECT_TRUE(document.find_pointer(std::string_view(reference).substr(1), error)) << reference;
  }
}

}  // namespace
}  // namespace octavo
