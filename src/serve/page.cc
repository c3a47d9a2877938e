#include "serve/page.h"

#include <string>

namespace octavo {
namespace {

// Makes the response for a page. The rest of the Content-Security-Policy is in the page itself.
http::Response html(int status, std::string_view text) {
  return {.status = status,
          .content_type = "text/html; charset=utf-8",
          .headers = {{"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", "frame-ancestors 'none'"},
                      {"Referrer-Policy", "no-referrer"},
                      {"X-Content-Type-Options", "nosniff"}},
          .body = std::string(text)};
}

}  // namespace

http::Response start_page() { return html(200, page_files::index); }

http::Response fleet_page() {
  constexpr std::string_view kApp = R"(<div id="app")";
  std::string text(page_files::index);
  text.insert(text.find(kApp) + kApp.size(), R"( data-of="fleet")");
  return html(200, text);
}

http::Response login_page() { return html(401, page_files::login); }

}  // namespace octavo
