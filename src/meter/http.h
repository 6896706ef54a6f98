#pragma once
// HTTP by libcurl: GET only, TLS verified, bounded in time and size, no proxy, no redirection.

#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "meter/profile.h"
#include "meter/secret.h"

namespace flyball::meter {

class HttpClient {
 public:
  static constexpr std::size_t kLargestAnswer = 16 << 20;

  /// `unsupported` where the program was built without libcurl.
  static Result<std::unique_ptr<HttpClient>> make(const Profile& profile);
  virtual ~HttpClient() = default;
  /// The body of `address` + `target`. Anything but 200 is an error; 404 is `unsupported`.
  virtual Result<std::string> get(const std::string& target, Seconds timeout) = 0;
};

/// For a query: all but letters, digits and -._~ as %XX.
std::string percent_encoded(std::string_view text);

}  // namespace flyball::meter
