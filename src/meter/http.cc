#include "meter/http.h"

#include <fmt/format.h>

#include "meter/open.h"

#if FLYBALL_WITH_CURL
#include <curl/curl.h>
#endif

namespace flyball::meter {

std::string percent_encoded(std::string_view text) {
  std::string made;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      made += c;
    } else {
      made += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return made;
}

#if FLYBALL_WITH_CURL
namespace {

std::size_t take(const char* bytes, std::size_t size, std::size_t count, void* to) {
  auto& body = *static_cast<std::string*>(to);
  if (body.size() + size * count > HttpClient::kLargestAnswer) return 0;  // curl then ends with a write error
  body.append(bytes, size * count);
  return size * count;
}

struct CleanUp {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};

class CurlClient final : public HttpClient {
 public:
  CurlClient(const Profile& profile, Secret password, std::unique_ptr<CURL, CleanUp> handle)
      : base_(profile.address), password_(std::move(password)), handle_(std::move(handle)) {
    while (base_.ends_with('/')) base_.pop_back();
    CURL* h = handle_.get();
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_PROXY, "");
    curl_easy_setopt(h, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(h, CURLOPT_MAXFILESIZE, static_cast<long>(kLargestAnswer));
    curl_easy_setopt(h, CURLOPT_USERAGENT, "flyball");
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take);
    if (!profile.ca_file.empty()) curl_easy_setopt(h, CURLOPT_CAINFO, profile.ca_file.c_str());
    if (profile.user.empty()) return;
    curl_easy_setopt(h, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    curl_easy_setopt(h, CURLOPT_USERNAME, profile.user.c_str());
    curl_easy_setopt(h, CURLOPT_PASSWORD, password_.reveal().c_str());
  }

  Result<std::string> get(const std::string& target, Seconds timeout) override {
    const std::string url = base_ + target;
    std::string body;
    CURL* h = handle_.get();
    curl_easy_setopt(h, CURLOPT_URL, url.c_str());
    curl_easy_setopt(h, CURLOPT_WRITEDATA, &body);
    // 0 would mean no limit.
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(timeout.value() * 1000)));
    const CURLcode code = curl_easy_perform(h);
    if (code == CURLE_PEER_FAILED_VERIFICATION) {
      return fail(ErrorCode::refused, "the certificate is not one to trust", base_,
                  "name the certificate authority in meter.ca_file; verification cannot be switched off");
    }
    if (code == CURLE_WRITE_ERROR) return fail(ErrorCode::failed, "the answer is larger than 16 MiB", url);
    if (code != CURLE_OK) return fail(ErrorCode::failed, curl_easy_strerror(code), url);
    long status = 0;
    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200) return body;
    std::string remedy = status == 401 || status == 403 ? "check meter.user and its password" : "";
    return fail(status == 404 ? ErrorCode::unsupported : ErrorCode::failed, fmt::format("answered {}", status), url,
                std::move(remedy));
  }

 private:
  std::string base_;
  Secret password_;
  std::unique_ptr<CURL, CleanUp> handle_;
};

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::make(const Profile& profile) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  std::unique_ptr<CURL, CleanUp> handle(ready == CURLE_OK ? curl_easy_init() : nullptr);
  if (!handle) return fail(ErrorCode::failed, "libcurl does not start");
  FLYBALL_ASSIGN(Secret password, load_secret(profile.password, "password"));
  return std::make_unique<CurlClient>(profile, std::move(password), std::move(handle));
}

#else

Result<std::unique_ptr<HttpClient>> HttpClient::make(const Profile&) {
  return fail(left_out("HTTP (Redfish, Prometheus)", "libcurl4-openssl-dev"));
}

#endif

}  // namespace flyball::meter
