#include "series/reader_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace flyball::series {
namespace {

constexpr std::uint64_t kMaxRowsBeforeHeader = 20;

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_blanks(std::string_view cell) {
  while (!cell.empty() && cell.front() == ' ') cell.remove_prefix(1);
  while (!cell.empty() && cell.back() == ' ') cell.remove_suffix(1);
  return cell;
}

}  // namespace

Result<> TableReader::read(ByteSource& bytes) {
  CsvOptions options;
  options.max_line_bytes = options_.max_line_bytes;
  CsvReader reader(bytes, options);
  CsvRow next;
  for (;;) {
    FLYBALL_ASSIGN(const bool more, reader.next(next));
    if (!more) break;
    if (!layout_) {
      const char separator = guess_separator(next.text);
      separator_ = separator;
      if (separator != ',' && next.defect.empty()) {
        reader.set_separator(separator);
        joined_ = split(next.text, separator);
        next.cells = joined_;
      }
      if (take_header(next)) continue;
      reader.set_separator(',');
      intake_.set_aside(next.line, "it stands before the header", next.text);
      if (++rows_before_header_ == kMaxRowsBeforeHeader) break;
      continue;
    }
    row(next);
    if (failure_) return fail(*std::move(failure_));
  }
  intake_.summary().bytes = reader.bytes();
  if (!layout_) {
    return fail(ErrorCode::input, fmt::format("no header of the format {} was found", to_string(format_)), {},
                "name the format, or log with a header (nvidia-smi: without noheader)");
  }
  stamps_.report(intake_);
  return {};
}

bool TableReader::take_header(const CsvRow& row) {
  if (!row.defect.empty()) return false;
  Header header;
  for (const auto cell : row.cells) header.emplace_back(without_blanks(cell));
  if (!header.empty() && header.back().empty()) header.pop_back();  // a separator behind the last name
  auto layout = layout_of(format_, header, options_, intake_);
  if (!layout) return false;
  layout_ = std::move(layout);
  header_text_ = row.text;
  header_time_ = header[layout_->time_cell];
  slots_.clear();
  slot_of_key_.clear();
  next_slot_ = 0;
  return true;
}

/// The name of the time column stands where a time should.
bool TableReader::is_header_again(const CsvRow& row) const {
  return row.text == header_text_ ||
         (layout_->time_cell < row.cells.size() && without_blanks(row.cells[layout_->time_cell]) == header_time_);
}

/// Sets cells_ to as many cells as the header has. False if that cannot be done in one way only.
bool TableReader::fit_cells(const CsvRow& row) {
  cells_ = row.cells;
  if (cells_.size() == layout_->cells) return true;
  if (cells_.size() == layout_->cells + 1 && without_blanks(cells_.back()).empty()) {
    cells_ = cells_.first(layout_->cells);
    return true;
  }
  if (!layout_->comma_and_blank || row.text.find('"') != std::string_view::npos) return false;
  joined_.clear();
  for (const auto cell : row.cells) {
    if (joined_.empty() || cell.starts_with(' ')) {
      joined_.push_back(cell);
    } else {
      const char* const from = joined_.back().data();
      joined_.back() = std::string_view(from, static_cast<std::size_t>(cell.data() + cell.size() - from));
    }
  }
  cells_ = joined_;
  return cells_.size() == layout_->cells;
}

/// Of what is no row of values. True if that is what it was.
bool TableReader::odd_row(const CsvRow& row) {
  if (!row.defect.empty()) {
    intake_.set_aside(row.line, std::string(row.defect), row.text);
    return true;
  }
  if (is_header_again(row)) {
    ++intake_.summary().repeated_headers;
    if (row.text != header_text_ && !take_header(row)) {
      intake_.set_aside(row.line, "a second header that cannot be read; the rows behind it follow the first", row.text);
    }
    return true;
  }
  if (!row.ended) intake_.summary().cut = true;
  if (fit_cells(row)) return false;
  std::string reason = "the last line is cut";
  if (row.ended) {
    reason = fmt::format("it has {} cells where the header has {}", row.cells.size(), layout_->cells);
    if (separator_ == ',' && row.cells.size() > layout_->cells)
      reason += " (with decimal commas, quote the cells or separate them by semicolons)";
  }
  intake_.set_aside(row.line, std::move(reason), row.text);
  return true;
}

/// A row that is whole, unquoted and as wide as the header, whose stamp begins with a digit, is no header again.
bool TableReader::plain_row(const CsvRow& row) {
  if (!row.defect.empty() || !row.ended || row.cells.size() != layout_->cells) return false;
  const std::string_view stamp = row.cells[layout_->time_cell];
  if (stamp.empty() || static_cast<unsigned char>(stamp.front() - '0') > 9) return false;
  cells_ = row.cells;
  return true;
}

void TableReader::row(const CsvRow& row) {
  if (!plain_row(row) && odd_row(row)) return;
  WallTime at;
  if (const char* problem = stamps_.read(cells_[layout_->time_cell], layout_->time_unit, at)) {
    const std::string_view stamp = cells_[layout_->time_cell];
    intake_.set_aside(row.line, fmt::format("{}: '{}'", problem, stamp.substr(0, 40)), row.text);
    return;
  }
  const std::string_view key = key_of_row();
  const Slots* slots = find_slots(key);
  if (slots == nullptr) slots = new_slots(key, row);
  if (slots == nullptr) return;
  ++intake_.summary().rows;
  const std::uint32_t* series = slots->series.data();
  for (const ValueColumn& column : layout_->values) {
    double value = 0;
    Status status = read_cell(cells_[column.cell], column.rule, value);
    // What follows the last comma of a line without end may lack its last digits.
    if (!row.ended && column.cell + 1 == layout_->cells) status = Status::missing;
    if (status == Status::ok) {
      intake_.value(*series++, at, value, row.line, row.text);
    } else {
      if (status == Status::garbage) intake_.refuse(why_garbage(cells_[column.cell]), row.line, cells_[column.cell]);
      intake_.absent(*series++, at, status, row.line, row.text);
    }
  }
}

std::string_view TableReader::key_of_row() {
  if (layout_->key_cells.empty()) return {};
  const std::string_view first = cells_[layout_->key_cells.front()];
  const std::string_view last = cells_[layout_->key_cells.back()];
  if (layout_->key_cells.size() == 1) return first;
  const bool adjacent = last.data() == first.data() + first.size() + 1;
  if (adjacent) return {first.data(), first.size() + 1 + last.size()};
  key_text_.assign(first).append("\n").append(last);
  return key_text_;
}

const TableReader::Slots* TableReader::find_slots(std::string_view key) {
  for (const std::size_t guess : {next_slot_, next_slot_ + 1}) {
    const std::size_t index = guess < slots_.size() ? guess : 0;
    if (index < slots_.size() && slots_[index]->key == key) {
      next_slot_ = index;
      return slots_[index].get();
    }
  }
  const auto found = slot_of_key_.find(key);
  if (found == slot_of_key_.end()) return nullptr;
  next_slot_ = found->second;
  return slots_[next_slot_].get();
}

/// The series of a row like none before; nullptr if it names nothing that can be named, and was set aside, or if
/// failure_ says that there can be no more.
const TableReader::Slots* TableReader::new_slots(std::string_view key, const CsvRow& row) {
  DeviceId device;
  if (layout_->row_key != RowKey::none) {
    auto named = device_of(row);
    if (!named) {
      intake_.set_aside(row.line, named.error().what, row.text);
      return nullptr;
    }
    device = *std::move(named);
  }
  auto slots = std::make_unique<Slots>();
  slots->key = key;
  for (const auto& column : layout_->values) {
    SeriesKey series = column.key;
    if (layout_->row_key != RowKey::none) series.device = device;
    const auto handle = intake_.series(series);
    if (!handle) {
      failure_ = handle.error();
      return nullptr;
    }
    slots->series.push_back(*handle);
  }
  next_slot_ = slots_.size();
  slot_of_key_.emplace(slots->key, next_slot_);
  slots_.push_back(std::move(slots));
  return slots_.back().get();
}

Result<DeviceId> TableReader::device_of(const CsvRow& row) {
  const std::string_view name = without_blanks(cells_[layout_->key_cells.back()]);
  switch (layout_->row_key) {
    case RowKey::none:
    case RowKey::device:
      if (!all_digits(name)) return DeviceId::parse(name);
      [[fallthrough]];
    case RowKey::index: {
      if (!all_digits(name) || name.size() > 6) {
        return fail(ErrorCode::input, fmt::format("'{}' is no index of a GPU", name.substr(0, 40)));
      }
      FLYBALL_ASSIGN(auto device, DeviceId::parse(fmt::format("{}/gpu-{}", options_.index_prefix, name)));
      intake_.warn(
          fmt::format("line {}: a GPU is named by its index {} only, which changes with order and reboot; it is "
                      "called {} here (log the uuid as well)",
                      row.line, name, device.text()));
      return device;
    }
    case RowKey::pci:
      return DeviceId::parse(fmt::format("pci-{}", name));
    case RowKey::node: {
      std::string text = all_digits(name) ? fmt::format("node-{}", name) : std::string(name);
      if (layout_->key_cells.size() == 2) {
        text = fmt::format("{}/{}", without_blanks(cells_[layout_->key_cells.front()]), text);
      }
      return DeviceId::parse(text);
    }
  }
  return fail(ErrorCode::failed, "the row has no key");
}

}  // namespace flyball::series
