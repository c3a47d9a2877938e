// A collection of a Kubernetes API, kept up to date by list and watch: what its answers mean. No socket, no
// clock.
#pragma once

#include <boost/json/fwd.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::fleet {

// Receives the changes of a collection. Objects of one name arrive in order.
class KubeSink {
 public:
  KubeSink() = default;
  KubeSink(const KubeSink&) = delete;
  KubeSink& operator=(const KubeSink&) = delete;
  virtual ~KubeSink() = default;

  virtual void put(const std::string& name, const boost::json::object& object) = 0;  // it is new or changed
  virtual void gone(const std::string& name) = 0;
  virtual void settled() = 0;  // the list is complete, or a later change was reported
};

class KubeMirror {
 public:
  // path: of the collection, like "/api/v1/namespaces/default/pods"; selector: a query, like
  // "labelSelector=app%3Dx", or "".
  KubeMirror(std::string path, std::string selector, KubeSink& sink)
      : path_(std::move(path)), selector_(std::move(selector)), sink_(sink) {}

  const std::string& path() const { return path_; }
  // The next request: a page of the list if listing(), otherwise the watch after the list.
  std::string target() const;
  bool listing() const { return listing_; }
  void start_over();  // what is known stays until a whole new list says otherwise

  // A page of the list. Errors: it is none; status is HTTP's.
  Result<> page(int status, std::string_view body);
  // One line of the watch. Errors: it says nothing that can be understood. 410 makes it start over.
  Result<> line(std::string_view text);
  // The watch was refused.
  Result<> refused(int status, std::string_view body);

 private:
  Result<> take(const boost::json::value& object, std::set<std::string>& names);

  const std::string path_;
  const std::string selector_;
  KubeSink& sink_;
  bool listing_ = true;
  std::string version_;          // of the list, then of the last change
  std::string next_page_;        // the list's continue token; "": the first
  std::set<std::string> names_;  // of the objects that are known
  std::set<std::string> listed_;
};

}  // namespace octavo::fleet
