#pragma once
// Numbers of other people's tables, in which a comma may stand before the decimals.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flyball::series {

/// Where cells are separated by semicolons a comma in a number stands before decimals; anywhere else it is refused,
/// with the remedy. Marks for thousands are never guessed: "1.234" beside "5,5" could be one, and is refused too.
class DecimalMark {
 public:
  explicit DecimalMark(char separator) : commas_(separator == ';') {}

  struct Wrong {
    std::string what, remedy;
  };
  /// Sets `value`, or says what is wrong. `line` is for messages.
  std::optional<Wrong> read(std::string_view cell, std::uint64_t line, double& value);

 private:
  struct Seen {
    std::uint64_t line = 0;  ///< 0: not yet
    std::string cell;
  };
  std::optional<Wrong> agree(std::string_view cell, std::uint64_t line, std::size_t place);

  bool commas_;
  std::array<Seen, 2> any_, doubtful_;  ///< the first with a point and with a comma; that could mark thousands
};

/// Of a row that has not as many cells as the header: decimal commas between commas look like more.
std::string row_remedy(std::size_t cells, std::size_t header);

}  // namespace flyball::series
