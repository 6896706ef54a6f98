#include "curve/table.h"

#include <algorithm>
#include <optional>

#include "base/csv.h"
#include "base/text.h"

namespace flyball::curve {
namespace {

constexpr std::uint64_t kMostRows = 1'000'000;
constexpr std::string_view kFormats =
    "known columns are gpu,workload,power_limit_w,time_s,power_w; "
    "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power; "
    "model_name,batch_size,dp,tp,pp,power_limit_0,…,time,energy";

using Cells = std::span<const std::string_view>;

/// One row as it stands in the file, before rows of one limit are joined.
struct Row {
  std::string gpu, workload, network;
  Watts limit;
  Seconds time;
  Watts power;
};

/// Where things are in a row. Absent columns are -1.
struct Columns {
  enum class Format { own, epochs, pipeline } format = Format::own;
  int gpu = -1, workload = -1, dataset = -1, network = -1, batch = -1, optimizer = -1, time = -1, power = -1;
  int energy = -1;
  std::vector<int> limits;
  std::string name;
};

int find(Cells header, std::string_view name) {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (to_lower(trim(header[i])) == name) return static_cast<int>(i);
  }
  return -1;
}

std::optional<Columns> match(Cells header) {
  Columns c;
  c.batch = find(header, "batch_size");
  c.limits = {find(header, "power_limit_w")};
  c.gpu = find(header, "gpu"), c.workload = find(header, "workload");
  c.time = find(header, "time_s"), c.power = find(header, "power_w");
  if (c.gpu >= 0 && c.workload >= 0 && c.limits[0] >= 0 && c.time >= 0 && c.power >= 0) {
    c.name = "gpu,workload";
    return c;
  }
  c.format = Columns::Format::epochs;
  c.limits = {find(header, "power_limit")};
  c.dataset = find(header, "dataset"), c.network = find(header, "network"), c.optimizer = find(header, "optimizer");
  c.time = find(header, "time_per_epoch"), c.power = find(header, "average_power");
  if (c.dataset >= 0 && c.network >= 0 && c.optimizer >= 0 && c.batch >= 0 && c.limits[0] >= 0 && c.time >= 0 &&
      c.power >= 0) {
    c.name = "dataset,network,batch_size,optimizer";
    return c;
  }
  c.format = Columns::Format::pipeline;
  c.limits.clear();
  for (int i = 0; i < 64; ++i) {
    const int column = find(header, "power_limit_" + std::to_string(i));
    if (column < 0) break;
    c.limits.push_back(column);
  }
  c.network = find(header, "model_name"), c.time = find(header, "time"), c.energy = find(header, "energy");
  if (c.network >= 0 && c.batch >= 0 && !c.limits.empty() && c.time >= 0 && c.energy >= 0) {
    c.name = "model_name,batch_size";
    return c;
  }
  return std::nullopt;
}

class RowReader {
 public:
  RowReader(Columns columns, std::string gpu) : columns_(std::move(columns)), gpu_(std::move(gpu)) {}

  /// The row, or why it is skipped.
  Result<Row> read(Cells cells) const {
    Row row;
    FLYBALL_ASSIGN(const double limit, number(cells, columns_.limits.front(), "limit"));
    for (const int column : columns_.limits) {
      FLYBALL_ASSIGN(const double other, number(cells, column, "limit"));
      if (other != limit) return fail(ErrorCode::input, "the GPUs of the row have different limits");
    }
    row.limit = Watts(limit);
    FLYBALL_ASSIGN(const double time, number(cells, columns_.time, "time"));
    row.time = Seconds(time);
    if (columns_.energy >= 0) {
      FLYBALL_ASSIGN(const double energy, number(cells, columns_.energy, "energy"));
      row.power = Joules(energy) / row.time / static_cast<double>(columns_.limits.size());
    } else {
      FLYBALL_ASSIGN(const double power, number(cells, columns_.power, "power"));
      row.power = Watts(power);
    }
    FLYBALL_TRY(name(cells, row));
    return row;
  }

 private:
  Result<double> number(Cells cells, int column, const char* what) const {
    const auto value = parse_double(trim(cells[static_cast<std::size_t>(column)]));
    if (!value) return fail(ErrorCode::input, std::string("the ") + what + " is not a number");
    if (*value <= 0) return fail(ErrorCode::input, std::string("the ") + what + " is not above 0");
    return *value;
  }

  Result<> name(Cells cells, Row& row) const {
    const auto text = [&](int column) { return std::string(trim(cells[static_cast<std::size_t>(column)])); };
    row.gpu = gpu_;
    if (columns_.format == Columns::Format::own) {
      row.gpu = text(columns_.gpu);
      row.workload = row.network = text(columns_.workload);
    } else {
      row.network = text(columns_.network);
      row.workload = row.network + ", batch " + text(columns_.batch);
      if (columns_.format == Columns::Format::epochs) {
        row.workload = text(columns_.dataset) + " " + row.workload + ", " + text(columns_.optimizer);
      }
    }
    if (row.network.empty()) return fail(ErrorCode::input, "the workload has no name");
    return {};
  }

  Columns columns_;
  std::string gpu_;
};

/// Joins rows of one limit: mean time, power weighted by time, so that energy and time add up.
class Gatherer {
 public:
  void add(const Row& row) {
    const auto key = std::pair(row.gpu, row.workload);
    const auto [at, is_new] = index_.try_emplace(key, curves_.size());
    if (is_new) curves_.push_back({row.gpu, row.workload, row.network, {}});
    Sum& sum = curves_[at->second].sums[Milliwatts::from(row.limit)];
    sum.time += row.time;
    sum.energy += row.power * row.time;
    ++sum.rows;
  }
  std::vector<MeasuredCurve> take() const {
    std::vector<MeasuredCurve> all;
    for (const Gathered& gathered : curves_) {
      MeasuredCurve curve{gathered.gpu, gathered.workload, gathered.network, {}};
      for (const auto& [limit, sum] : gathered.sums) {
        curve.points.push_back({limit, sum.time / static_cast<double>(sum.rows), sum.energy / sum.time});
      }
      all.push_back(std::move(curve));
    }
    return all;
  }

 private:
  struct Sum {
    Seconds time;
    Joules energy;
    std::uint64_t rows = 0;
  };
  struct Gathered {
    std::string gpu, workload, network;
    std::map<Milliwatts, Sum> sums;
  };
  std::map<std::pair<std::string, std::string>, std::size_t> index_;
  std::vector<Gathered> curves_;
};

void skip(CurveTable& table, std::uint64_t line, std::string reason) {
  ++table.skipped_count;
  if (table.skipped.size() < CurveTable::kMostSkipped) table.skipped.push_back({line, std::move(reason)});
}

void add_header(CurveTable& table, std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return;
  table.header[std::string(trim(text.substr(1, colon - 1)))] = std::string(trim(text.substr(colon + 1)));
}

}  // namespace

Result<CurveTable> read_curves(ByteSource& bytes, const std::string& where, const std::string& gpu) {
  CsvReader reader(bytes);
  CurveTable table;
  Gatherer gatherer;
  std::optional<RowReader> row_reader;
  std::size_t width = 0;
  CsvRow row;
  while (true) {
    auto more = reader.next(row);
    if (!more) {
      more.error().where = where;
      return fail(std::move(more.error()));
    }
    if (!*more) break;
    if (trim(row.text).substr(0, 1) == "#") {
      if (!row_reader) add_header(table, trim(row.text));
      continue;
    }
    if (!row_reader) {
      const auto columns = match(row.cells);
      if (!columns) return fail(ErrorCode::input, "these columns are no curves", where, std::string(kFormats));
      width = row.cells.size();
      table.format = columns->name;
      row_reader.emplace(*columns, gpu);
      continue;
    }
    if (row.line > kMostRows) return fail(ErrorCode::input, "there are more than 1,000,000 rows", where);
    if (!row.defect.empty() || row.cells.size() != width) {
      skip(table, row.line, row.defect.empty() ? "it has another number of cells" : std::string(row.defect));
      continue;
    }
    const auto read = row_reader->read(row.cells);
    if (read) {
      gatherer.add(*read);
    } else {
      skip(table, row.line, read.error().what);
    }
  }
  table.curves = gatherer.take();
  if (table.curves.empty()) {
    return fail(ErrorCode::input, row_reader ? "there is no usable row" : "the file is empty", where,
                table.skipped.empty() ? std::string(kFormats) : "the first one: " + table.skipped[0].reason);
  }
  return table;
}

}  // namespace flyball::curve
