// The screen that `dcgmi dmon -e …` prints: a header of field tags, a line of units, and one row per entity and round.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/csv.h"
#include "base/text.h"
#include "series/reader_cell.h"
#include "series/reader_formats.h"
#include "series/reader_stamp.h"

namespace flyball::series {
namespace {

struct DcgmField {
  std::string_view tag;
  Signal signal;
  Scale scale;
};

// Tags and units of DCGM's field list: 155 POWER [W], 156 TOTEC [mJ], 150 TMPTR and 140 MMTMP [°C], 203 GPUTL [%],
// 100 SMCLK and 101 MMCLK [MHz]. The power is NVML's default, a mean on most parts.
constexpr std::array kFields = {
    DcgmField{"POWER", Signal::power_average, {}},      DcgmField{"TOTEC", Signal::energy, {1, 1e3}},
    DcgmField{"TMPTR", Signal::temperature, {}},        DcgmField{"MMTMP", Signal::memory_temperature, {}},
    DcgmField{"GPUTL", Signal::utilisation, {1, 100}},  DcgmField{"SMCLK", Signal::sm_clock, {1e6, 1}},
    DcgmField{"MMCLK", Signal::memory_clock, {1e6, 1}},
};

void words_of(std::string_view line, std::vector<std::string_view>& words) {
  words.clear();
  for (std::size_t at = 0;;) {
    at = line.find_first_not_of(" \t", at);
    if (at == std::string_view::npos) return;
    const auto end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
}

class DcgmReader {
 public:
  DcgmReader(const ReadOptions& options, Intake& intake, StampReader stamps)
      : options_(options), intake_(intake), stamps_(std::move(stamps)) {}

  Result<> line(const Line& line) {
    words_of(line.text, words_);
    if (words_.empty()) return {};
    if (take_header()) return {};
    const auto entity = std::find_if(words_.begin(), words_.end(), [](std::string_view word) { return word == "GPU"; });
    if (words_[0] == "ID" || (fields_.empty() && entity == words_.end())) return {};  // the line of units
    if (entity == words_.end() || words_.end() - entity < 2) {
      const bool other = words_[0] == "Switch" || words_[0] == "CPU" || words_[0] == "GPU-I" || words_[0] == "GPU-CI" ||
                         words_[0] == "Link" || words_[0] == "Core";
      if (other) {
        intake_.warn(
            fmt::format("rows of entities of the kind {} are left out: power belongs to whole GPUs", words_[0]));
      } else {
        intake_.set_aside(line.number, "no row of a GPU", line.text);
      }
      return {};
    }
    return gpu_row(static_cast<std::size_t>(entity - words_.begin()), line);
  }
  void finish() const { stamps_.report(intake_); }

 private:
  bool take_header() {
    auto first =
        std::find_if(words_.begin(), words_.end(), [](std::string_view w) { return w == "#Entity" || w == "Entity"; });
    if (first == words_.end()) return false;
    if (!fields_.empty()) ++intake_.summary().repeated_headers;
    fields_.assign(first + 1, words_.end());
    std::vector<const DcgmField*> known;
    for (const auto& tag : fields_) {
      const auto field = std::find_if(kFields.begin(), kFields.end(), [&](const auto& f) { return f.tag == tag; });
      const bool twice = field != kFields.end() && std::find(known.begin(), known.end(), &*field) != known.end();
      known.push_back(field == kFields.end() || twice ? nullptr : &*field);
    }
    known_ = std::move(known);
    return true;
  }

  /// The words before the entity are a stamp, as `ts` puts it there; without, rounds are counted from a stated start.
  Result<const char*> time_of(std::size_t entity, std::string_view index, WallTime& at) {
    if (entity > 0) {
      std::string stamp(words_[0]);
      for (std::size_t i = 1; i < entity; ++i) stamp.append(" ").append(words_[i]);
      return stamps_.read(stamp, StampUnit::by_size, at);
    }
    if (!options_.start || !options_.interval) {
      return fail(ErrorCode::input, "dmon prints no times", {},
                  "state when it began and its interval, or log it through `ts '%Y-%m-%dT%H:%M:%.S%z'`");
    }
    if (!seen_.emplace(index).second) {
      seen_ = {std::string(index)};
      ++round_;
    }
    at = *options_.start + *options_.interval * static_cast<double>(round_);
    return nullptr;
  }

  Result<> gpu_row(std::size_t entity, const Line& line) {
    const std::string_view index = words_[entity + 1];
    const bool is_index =
        index.size() <= 4 && std::all_of(index.begin(), index.end(), [](char c) { return c >= '0' && c <= '9'; });
    const std::size_t values = words_.size() - entity - 2;
    if (!is_index || values != fields_.size()) {
      if (!line.ended) intake_.summary().cut = true;
      intake_.set_aside(line.number,
                        !line.ended ? std::string("the last line is cut")
                        : !is_index ? std::string("the GPU has no number")
                                    : fmt::format("it has {} values where the header has {}", values, fields_.size()),
                        line.text);
      return {};
    }
    WallTime at;
    FLYBALL_ASSIGN(const char* const problem, time_of(entity, index, at));
    if (problem != nullptr) {
      intake_.set_aside(line.number, problem, line.text);
      return {};
    }
    auto device = DeviceId::parse(fmt::format("{}/gpu-{}", options_.index_prefix, index));
    if (!device) return fail(std::move(device.error()));
    intake_.warn(
        fmt::format("GPUs are named by index only, which changes with order and reboot; they are called {}/gpu-N",
                    options_.index_prefix));
    ++intake_.summary().rows;
    for (std::size_t i = 0; i < values; ++i) {
      if (known_[i] == nullptr) continue;
      const DcgmField& field = *known_[i];
      FLYBALL_ASSIGN(const auto series,
                     intake_.series({*device, field.signal, Scope::board, fmt::format("dcgm dmon {}", field.tag)}));
      double value = 0;
      const std::string_view cell = words_[entity + 2 + i];
      Status status = read_cell(cell, {field.signal, {}}, value);
      if (status == Status::ok && is_dcgm_blank(value)) status = Status::missing;
      if (!line.ended && i + 1 == values) {
        status = Status::missing;
        intake_.summary().cut = true;
      }
      if (status == Status::ok) {
        intake_.value(series, at, field.scale(value), line.number, line.text);
      } else {
        intake_.absent(series, at, status, line.number, line.text);
      }
    }
    return {};
  }

  const ReadOptions& options_;
  Intake& intake_;
  StampReader stamps_;
  std::vector<std::string_view> words_;
  std::vector<std::string> fields_;
  std::vector<const DcgmField*> known_;  ///< as fields_; null = not used
  std::set<std::string> seen_;           ///< GPUs of the round at hand
  std::uint64_t round_ = 0;
};

}  // namespace

bool is_dcgm_blank(double value) {
  // dcgm_structs.h: 0x7ffffff0 to f3, 0x7ffffffffffffff0 to f3, 140737488355328 to 331 (blank, not found, not
  // supported, not permitted). The 64-bit ones are one double.
  return (value >= 2147483632.0 && value <= 2147483635.0) ||
         (value >= 140737488355328.0 && value <= 140737488355331.0) || value >= 9.2e18;
}

Result<> read_dcgm(ByteSource& bytes, const ReadOptions& options, Intake& intake) {
  FLYBALL_ASSIGN(auto stamps, StampReader::make(options));
  DcgmReader reader(options, intake, std::move(stamps));
  LineReader lines(bytes, options.max_line_bytes);
  Line line;
  for (;;) {
    FLYBALL_ASSIGN(const bool more, lines.next(line));
    if (!more) break;
    if (!line.defect.empty()) {
      intake.set_aside(line.number, std::string(line.defect), line.text);
    } else {
      FLYBALL_TRY(reader.line(line));
    }
  }
  intake.summary().bytes = lines.bytes();
  reader.finish();
  return {};
}

}  // namespace flyball::series
