#pragma once
// Errors are values. An Error says what happened, where, with which value, and what the reader can do about it.

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace flyball {

/// Also the exit code of a program that ends with such an error.
enum class ErrorCode {
  failed = 1,       ///< it was tried and did not work
  input = 2,        ///< bad usage, configuration or data
  refused = 3,      ///< refused for safety
  unsupported = 4,  ///< this machine, driver or device cannot do it
  degraded = 5,     ///< done, but something is left in a worse state than promised
};

struct Error {
  ErrorCode code = ErrorCode::failed;
  std::string what;    ///< one sentence, with the offending value and the limit it broke
  std::string where;   ///< file:line, device UUID, or key; empty if `what` says it
  std::string remedy;  ///< what to do now; empty if there is nothing to do

  /// "where: what; remedy"
  std::string message() const;
  int exit_code() const { return static_cast<int>(code); }
  bool operator==(const Error&) const = default;
};

template <class T = void>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string what, std::string where = {}, std::string remedy = {}) {
  return tl::unexpected<Error>(Error{code, std::move(what), std::move(where), std::move(remedy)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace flyball

/// Returns the error of `expression` from the enclosing function, or goes on.
#define FLYBALL_TRY(expression)                                                             \
  do {                                                                                      \
    auto flyball_try_result = (expression);                                                 \
    if (!flyball_try_result) return ::flyball::fail(std::move(flyball_try_result.error())); \
  } while (false)

#define FLYBALL_CONCAT_(a, b) a##b
#define FLYBALL_CONCAT(a, b) FLYBALL_CONCAT_(a, b)
/// `FLYBALL_ASSIGN(auto x, f());` — declares x with the value of f(), or returns its error.
#define FLYBALL_ASSIGN(declaration, expression)                                           \
  auto FLYBALL_CONCAT(flyball_result_, __LINE__) = (expression);                          \
  if (!FLYBALL_CONCAT(flyball_result_, __LINE__))                                         \
    return ::flyball::fail(std::move(FLYBALL_CONCAT(flyball_result_, __LINE__).error())); \
  declaration = std::move(*FLYBALL_CONCAT(flyball_result_, __LINE__))
