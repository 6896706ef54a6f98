#include "series/decimal_mark.h"

#include <fmt/format.h>

#include "base/decimal.h"

namespace flyball::series {
namespace {

constexpr std::size_t kLongestNumber = 40;

/// Three digits behind the mark could as well be thousands, but not behind a zero or four digits and more.
bool thousands_or_decimals(std::string_view cell, std::size_t mark) {
  std::string_view whole = cell.substr(0, mark);
  if (whole.starts_with('-')) whole.remove_prefix(1);
  return cell.size() - mark - 1 == 3 && !whole.empty() && whole.size() <= 3 && whole[0] != '0';
}

DecimalMark::Wrong no_number(std::string_view cell, bool commas) {
  const bool digits = cell.find_first_not_of("0123456789.,eE+-") == cell.npos;
  if (digits && cell.find(',') != cell.npos && !commas)
    return {"this is no number where a comma does not stand before decimals",
            "write a decimal point, or separate the cells by semicolons, where decimal commas are read"};
  if (digits && cell.find_first_of(".,") != cell.find_last_of(".,"))
    return {"this has marks for thousands", "write digits with at most one mark, the one before decimals"};
  return {"this is no number", "write a number with a decimal point, or leave the cell empty"};
}

}  // namespace

std::optional<DecimalMark::Wrong> DecimalMark::read(std::string_view cell, std::uint64_t line, double& value) {
  const std::size_t mark = commas_ ? cell.find_first_of(".,") : cell.npos;
  if (mark == cell.npos || cell[mark] == '.') {
    if (!parse_decimal(cell, value)) return no_number(cell, commas_);
    return mark == cell.npos ? std::nullopt : agree(cell, line, mark);
  }
  if (cell.size() > kLongestNumber || cell.find_first_of(".,", mark + 1) != cell.npos) return no_number(cell, commas_);
  std::string point(cell);
  point[mark] = '.';
  if (!parse_decimal(point, value)) return no_number(cell, commas_);
  return agree(cell, line, mark);
}

/// One of two marks may be for thousands: nobody knows where a number could be read either way.
std::optional<DecimalMark::Wrong> DecimalMark::agree(std::string_view cell, std::uint64_t line, std::size_t place) {
  const std::size_t mine = cell[place] == ',' ? 1 : 0, other = 1 - mine;
  const bool doubtful = thousands_or_decimals(cell, place);
  const Seen& against = doubtful ? any_[other] : doubtful_[other];
  if (against.line > 0)
    return Wrong{fmt::format("the decimals stand behind a {} here and behind a {} in '{}' of line {}, unless one of "
                             "them marks thousands",
                             mine == 1 ? "comma" : "point", mine == 1 ? "point" : "comma", against.cell, against.line),
                 "write all numbers with the same mark before decimals, and none for thousands"};
  if (any_[mine].line == 0) any_[mine] = {line, std::string(cell)};
  if (doubtful && doubtful_[mine].line == 0) doubtful_[mine] = {line, std::string(cell)};
  return std::nullopt;
}

std::string row_remedy(std::size_t cells, std::size_t header) {
  return cells > header ? "mend the row or take it out; with decimal commas separate the cells by semicolons"
                        : "mend the row or take it out";
}

}  // namespace flyball::series
