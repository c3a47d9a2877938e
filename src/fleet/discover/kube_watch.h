// Keeps a KubeMirror up to date: a thread that lists, watches, and begins anew where it must.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "fleet/discover/kube_api.h"
#include "fleet/discover/kube_mirror.h"

namespace octavo::fleet {

class KubeWatch {
 public:
  // path, selector: see KubeMirror. `sink` outlives the watch and is called on its thread. While the server
  // does not answer, what was told stays told.
  KubeWatch(KubeApi api, std::string path, std::string selector, KubeSink& sink);
  ~KubeWatch();

 private:
  void run();
  // Until the list is behind us, or the watch ends.
  Result<> once();
  Result<> watch(KubeConnection& connection);
  bool pause(int ms);  // false: stopped

  const KubeApi api_;
  KubeMirror mirror_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace octavo::fleet
