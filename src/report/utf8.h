#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace flyball::report {

/// Text that is safe to show: malformed UTF-8 and control characters (terminal escapes among them) become U+FFFD,
/// newlines and tabs become blanks.
std::string clean_utf8(std::string_view text);

/// Columns on a terminal, one per code point: right for ASCII and for the signs that reports use (°, ·, ±, –, →).
std::size_t display_width(std::string_view clean);

/// &, <, >, " and ' as entities, of cleaned text: safe as content and inside a quoted attribute.
std::string escape_html(std::string_view text);

}  // namespace flyball::report
