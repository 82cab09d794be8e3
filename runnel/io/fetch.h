#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runnel/base/env.h"
#include "runnel/base/export.h"

namespace runnel::io {

// Where downloaded data is kept: $RUNNEL_HOME, else $XDG_CACHE_HOME/runnel, else ~/.cache/runnel.
RUNNEL_API std::string cache_dir();

// Bytes done and to do; `total` is 0 while it is unknown.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

struct FetchOptions {
  std::string sha256 = {};  // of the downloaded bytes; empty: not checked
  Progress progress = {};   // an exception thrown by it ends the download
};

// Downloads an http(s) URL to `path`, which appears only when complete and checked. Bytes of a broken
// download stay in `path`.part; when a sha256 is there to catch a wrong join, the next call goes on from
// them.
RUNNEL_API void fetch(const std::string& url, const std::string& path, const FetchOptions& options = {},
                      Env& env = Env::posix());

}  // namespace runnel::io
