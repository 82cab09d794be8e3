#include "runnel/io/fetch.h"

#include <curl/curl.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <memory>

#include "runnel/base/format.h"
#include "runnel/base/sha256.h"
#include "runnel/base/version.h"

namespace runnel::io {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// What libcurl's C callbacks work on; an exception must not pass through C, so it waits in `failure`.
struct Download {
  WritableFile& file;
  const Progress& progress;
  uint64_t offset;  // bytes that an earlier try left behind
  std::exception_ptr failure;
};

size_t on_data(char* data, size_t size, size_t count, void* user) noexcept {
  auto& download = *static_cast<Download*>(user);
  try {
    download.file.append(std::as_bytes(std::span(data, size * count)));
    return size * count;
  } catch (...) {
    download.failure = std::current_exception();
    return 0;
  }
}

int on_progress(void* user, curl_off_t total, curl_off_t now, curl_off_t, curl_off_t) noexcept {
  auto& download = *static_cast<Download*>(user);
  try {
    auto known = total > 0 ? static_cast<uint64_t>(total) + download.offset : 0;
    if (download.progress && now > 0) download.progress(static_cast<uint64_t>(now) + download.offset, known);
    return 0;
  } catch (...) {
    download.failure = std::current_exception();
    return 1;
  }
}

enum class Outcome { done, cannot_resume };

Outcome download(const std::string& url, const std::string& part, uint64_t offset, const Progress& progress, Env& env) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  std::unique_ptr<CURL, void (*)(CURL*)> curl(initialised == CURLE_OK ? curl_easy_init() : nullptr, curl_easy_cleanup);
  if (!curl) throw Error(Code::internal, "[fetch] libcurl does not start");

  std::unique_ptr<WritableFile> file = offset > 0 ? env.open_to_append(part) : env.create(part);
  Download state{*file, progress, offset, nullptr};
  std::array<char, CURL_ERROR_SIZE> message{};
  std::string agent = fmt::format("runnel/{}", version());
  auto set = [&](CURLoption option, auto value) {
    if (CURLcode code = curl_easy_setopt(curl.get(), option, value); code != CURLE_OK) {
      throw make_error(Code::internal, "[fetch] {}: {}", url, curl_easy_strerror(code));
    }
  };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_CONNECTTIMEOUT, 20L);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);  // silence for this long is a broken connection
  set(CURLOPT_LOW_SPEED_TIME, 30L);
  set(CURLOPT_NOSIGNAL, 1L);  // this is a library: other threads may be running
  set(CURLOPT_USERAGENT, agent.c_str());
  set(CURLOPT_ERRORBUFFER, message.data());
  set(CURLOPT_WRITEFUNCTION, &on_data);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&state));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &on_progress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&state));
  set(CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(offset));

  CURLcode code = curl_easy_perform(curl.get());
  if (state.failure) std::rethrow_exception(state.failure);
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (offset > 0 && (code == CURLE_RANGE_ERROR || status == 416)) return Outcome::cannot_resume;
  if (code != CURLE_OK) {
    throw make_error(status == 404 ? Code::not_found : Code::unavailable, "[fetch] {}: {}", url,
                     message[0] != '\0' ? message.data() : curl_easy_strerror(code));
  }
  file->sync();
  file->close();
  return Outcome::done;
}

}  // namespace

std::string cache_dir() {
  if (std::string home = environment("RUNNEL_HOME"); !home.empty()) return home;
  if (std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) return join_path(cache, "runnel");
  if (std::string home = environment("HOME"); !home.empty()) return join_path(home, ".cache/runnel");
  throw Error(Code::failed_precondition, "[cache] no cache folder: set RUNNEL_HOME");
}

void fetch(const std::string& url, const std::string& path, const FetchOptions& options, Env& env) {
  env.create_dirs(parent_dir(path));
  std::string part = path + ".part";
  uint64_t offset = !options.sha256.empty() && env.exists(part) ? env.stat(part).size : 0;
  while (true) {
    Outcome outcome = download(url, part, offset, options.progress, env);
    std::string sha;
    if (outcome == Outcome::done) {
      if (options.sha256.empty()) break;
      sha = sha256_file(env, part);
      if (sha == options.sha256) break;
      if (offset == 0) {
        env.remove(part);
        throw make_error(Code::data_loss, "[fetch] {}: sha256 is {}, expected {}", url, sha, options.sha256);
      }
    }
    offset = 0;  // the old beginning does not fit this server's file: once more, from the start
  }
  env.rename(part, path);
  env.sync_dir(parent_dir(path));
}

}  // namespace runnel::io
