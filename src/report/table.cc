#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/utf8.h"

namespace flyball::report {
namespace {

using Row = std::vector<std::string>;

Row clean_row(const Row& row, std::size_t columns) {
  Row clean(columns);
  for (std::size_t i = 0; i < std::min(columns, row.size()); ++i) clean[i] = clean_utf8(row[i]);
  return clean;
}

std::string padded(const std::string& cell, std::size_t width, Align align) {
  const std::size_t own = display_width(cell);
  const std::string blanks(width > own ? width - own : 0, ' ');
  return align == Align::right ? blanks + cell : cell + blanks;
}

void append_line(std::string& text, const Row& row, const Table& table, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) line += "  ";
    line += padded(row[i], widths[i], table.columns[i].align);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + '\n';
}

Row titles(const Table& table) {
  Row row;
  for (const Column& column : table.columns) row.push_back(clean_utf8(column.title));
  return row;
}

/// A pipe would end the cell, and markdown passes HTML through.
std::string markdown_cell(const std::string& cell) {
  std::string escaped;
  for (const char c : cell) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '[') escaped += '\\';
    if (c == '<') {
      escaped += "&lt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string to_text(const Table& table, std::size_t most_rows) {
  std::vector<Row> rows;
  for (const Row& row : table.rows) {
    if (rows.size() == most_rows) break;
    rows.push_back(clean_row(row, table.columns.size()));
  }
  const Row head = titles(table);
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < head.size(); ++i) {
    std::size_t width = display_width(head[i]);
    for (const Row& row : rows) width = std::max(width, display_width(row[i]));
    widths.push_back(width);
  }
  std::string text;
  if (!table.caption.empty()) text += clean_utf8(table.caption) + '\n';
  const bool headed = std::any_of(head.begin(), head.end(), [](const std::string& title) { return !title.empty(); });
  if (headed) append_line(text, head, table, widths);
  for (const Row& row : rows) append_line(text, row, table, widths);
  if (rows.size() < table.rows.size()) text += fmt::format("… and {} more\n", table.rows.size() - rows.size());
  return text;
}

std::string to_markdown(const Table& table) {
  std::string text;
  if (!table.caption.empty()) text += "**" + markdown_cell(clean_utf8(table.caption)) + "**\n\n";
  const auto line = [&](const Row& row) {
    text += '|';
    for (const std::string& cell : row) text += ' ' + markdown_cell(cell) + " |";
    text += '\n';
  };
  line(titles(table));
  text += '|';
  for (const Column& column : table.columns) text += column.align == Align::right ? "---:|" : "---|";
  text += '\n';
  for (const Row& row : table.rows) line(clean_row(row, table.columns.size()));
  return text;
}

std::string to_html(const Table& table) {
  std::string html = "<div class=\"scroll\"><table>\n";
  if (!table.caption.empty()) html += "<caption>" + escape_html(table.caption) + "</caption>\n";
  const auto class_of = [&](std::size_t i) { return table.columns[i].align == Align::right ? " class=\"n\"" : ""; };
  const Row head = titles(table);
  const bool headed = std::any_of(head.begin(), head.end(), [](const std::string& title) { return !title.empty(); });
  if (headed) {
    html += "<thead><tr>";
    for (std::size_t i = 0; i < head.size(); ++i) {
      html += fmt::format("<th scope=\"col\"{}>{}</th>", class_of(i), escape_html(head[i]));
    }
    html += "</tr></thead>\n";
  }
  html += "<tbody>\n";
  for (const Row& row : table.rows) {
    const Row cells = clean_row(row, table.columns.size());
    html += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = escape_html(cells[i]);
      html += i == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", class_of(i), cell)
                     : fmt::format("<td{}>{}</td>", class_of(i), cell);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string format_count(double count) {
  if (!std::isfinite(count)) return "–";
  const std::string digits = fmt::format("{:.0f}", std::fabs(count));
  std::string text = count < 0 && digits != "0" ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string format_percent(const Estimate& fraction, int decimals) {
  if (!std::isfinite(fraction.value)) return "–";
  if (fraction.low == fraction.high) return flyball::format_percent(fraction.value, decimals);
  if (!std::isfinite(fraction.low) || !std::isfinite(fraction.high)) {
    return flyball::format_percent(fraction.value, decimals) + " (no interval)";
  }
  return fmt::format("{:.{}f} % ({:.{}f} to {:.{}f} at {:.0f} %)", fraction.value * 100, decimals, fraction.low * 100,
                     decimals, fraction.high * 100, decimals, fraction.level * 100);
}

}  // namespace flyball::report
