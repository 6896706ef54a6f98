#pragma once
// Tables with a header: one way to read them all. A layout says what each column is; formats differ in how a layout
// comes from a header. Private to the readers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/csv.h"
#include "series/reader_cell.h"
#include "series/reader_intake.h"
#include "series/reader_stamp.h"

namespace flyball::series {

/// How a row names what it is about.
enum class RowKey : std::uint8_t {
  none,    ///< it does not: each value column has its own device
  device,  ///< by UUID or another lasting name
  pci,     ///< by PCI address
  index,   ///< by a bare index
  node,    ///< by run and node, or node alone: "RUN/node-3"
};

struct ValueColumn {
  std::size_t cell = 0;
  SeriesKey key;  ///< the device is empty where the row names it
  CellRule rule;
};

struct Layout {
  std::size_t cells = 0;  ///< of the header, and so of each row
  std::size_t time_cell = 0;
  StampUnit time_unit = StampUnit::by_size;
  RowKey row_key = RowKey::none;
  std::vector<std::size_t> key_cells;
  std::vector<ValueColumn> values;
  bool comma_and_blank = false;  ///< the separator is ", ": a comma without blank is a decimal one
};

using Header = std::vector<std::string>;

// A layout, or nothing where the row is no header of the format.
std::optional<Layout> nvidia_smi_layout(const Header& header, Intake& intake);
std::optional<Layout> node_power_layout(const Header& header);
std::optional<Layout> zeus_layout(const Header& header, const ReadOptions& options);
std::optional<Layout> table_layout(const Header& header, const ReadOptions& options, Intake& intake);
std::optional<Layout> layout_of(Format format, const Header& header, const ReadOptions& options, Intake& intake);

class TableReader {
 public:
  TableReader(Format format, const ReadOptions& options, Intake& intake, StampReader stamps)
      : format_(format), options_(options), intake_(intake), stamps_(std::move(stamps)) {}
  Result<> read(ByteSource& bytes);

 private:
  struct Slots {
    std::string key;
    std::vector<std::uint32_t> series;  ///< one per value column
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  void row(const CsvRow& row);
  bool odd_row(const CsvRow& row);
  bool plain_row(const CsvRow& row);
  bool take_header(const CsvRow& row);
  bool is_header_again(const CsvRow& row) const;
  bool fit_cells(const CsvRow& row);
  std::string_view key_of_row();
  const Slots* find_slots(std::string_view key);
  const Slots* new_slots(std::string_view key, const CsvRow& row);
  Result<DeviceId> device_of(const CsvRow& row);

  Format format_;
  const ReadOptions& options_;
  Intake& intake_;
  StampReader stamps_;
  std::optional<Layout> layout_;
  char separator_ = ',';
  std::string header_text_;
  std::string header_time_;
  std::span<const std::string_view> cells_;    ///< of the row at hand
  std::vector<std::string_view> joined_;       ///< cells put together again at decimal commas
  std::string key_text_;                       ///< where two cells make the key
  std::vector<std::unique_ptr<Slots>> slots_;  ///< in order of appearance, for rows tend to come in rounds
  std::size_t next_slot_ = 0;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> slot_of_key_;
  std::uint64_t rows_before_header_ = 0;
  std::optional<Error> failure_;
};

}  // namespace flyball::series
