#include "meter/secret.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/text.h"

namespace flyball::meter {
namespace {

constexpr std::size_t kLongest = 4096;

Result<Secret> from_file(const std::string& path, const std::string& what) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return fail(ErrorCode::input, what + " cannot be read", path, "check the name and who may read it");
  }
  if ((status.st_mode & S_IRWXO) != 0) {
    return fail(ErrorCode::input, "any user may read the " + what, path, "chmod o= " + path);
  }
  FLYBALL_ASSIGN(std::string text, system_filesystem().read(path, kLongest));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty()) return fail(ErrorCode::input, "the file of the " + what + " is empty", path);
  return Secret(std::move(text));
}

}  // namespace

Secret::~Secret() {
  volatile char* at = text_.data();
  for (std::size_t i = 0; i < text_.size(); ++i) at[i] = 0;
}

Result<Secret> load_secret(const SecretPlace& place, const std::string& what) {
  if (!place.file.empty()) return from_file(place.file, what);
  if (place.variable.empty()) return Secret();
  const char* value = std::getenv(place.variable.c_str());
  if (value == nullptr || *value == '\0') {
    return fail(ErrorCode::input, fmt::format("the variable {} of the {} is not set", place.variable, what), {},
                "set it, or name a file instead");
  }
  return Secret(value);
}

}  // namespace flyball::meter
