#include "fleet/route/session_list.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <iterator>
#include <utility>

#include "fleet/relay/relay.h"
#include "http/target.h"
#include "openai/session_path.h"
#include "serve/routes/item_page.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

// Returns the sessions of a list, or null if the value is no list.
json::array* sessions_in(json::value& list) {
  json::object* object = list.if_object();
  json::value* data = object ? object->if_contains("data") : nullptr;
  return data ? data->if_array() : nullptr;
}

std::string_view id_of(const json::value& session) {
  const json::object* object = session.if_object();
  const json::value* id = object ? object->if_contains("id") : nullptr;
  return id && id->is_string() ? std::string_view(id->get_string()) : std::string_view();
}

// Returns the response of a worker without the headers of its connection.
http::Response refusal_of(const WorkerAnswer& answer) {
  const http::Response& response = answer.response;
  return {.status = response.status == 200 ? 502 : response.status,
          .content_type = response.content_type,
          .headers = passed_back(response.headers, answer.url),
          .body = response.body};
}

}  // namespace

bool is_session_list(const http::Request& request) {
  return request.method == "GET" && request.path == openai::kSessionsPath;
}

MergeAnswers merge_session_lists(const http::Request& request) {
  std::size_t limit = 100;  // the default of servers
  const std::string text = http::query_value(request.query, "limit").value_or("");
  std::from_chars(text.data(), text.data() + text.size(), limit);
  return [limit](std::span<const WorkerAnswer> answers) {
    json::array all, errors;
    bool more = false, any = false;
    for (const WorkerAnswer& answer : answers) {
      boost::system::error_code wrong;
      json::value list = json::parse(answer.response.status == 200 ? answer.response.body : "", wrong);
      json::array* sessions = wrong ? nullptr : sessions_in(list);
      if (sessions == nullptr) {
        errors.push_back({{"worker", answer.url}, {"status", answer.response.status}});
        continue;
      }
      any = true;
      const json::value* rest = list.get_object().if_contains("has_more");
      more = more || (rest && rest->is_bool() && rest->get_bool());
      for (json::value& session : *sessions) {
        if (json::object* object = session.if_object()) object->emplace("worker", answer.url);
        all.push_back(std::move(session));
      }
    }
    if (!any) return refusal_of(answers.front());
    std::ranges::stable_sort(all, {}, id_of);
    // The next page begins after the last id, so all sessions with this id are on this page.
    std::size_t count = std::min(limit, all.size());
    while (count > 0 && count < all.size() && id_of(all[count]) == id_of(all[count - 1])) ++count;
    more = more || all.size() > count;
    all.resize(count);
    json::object page = routes::item_list(std::move(all), more);
    if (!errors.empty()) page["errors"] = std::move(errors);
    return http::Response{.body = json::serialize(page)};
  };
}

}  // namespace octavo::fleet
