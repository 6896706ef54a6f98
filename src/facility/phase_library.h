#pragma once
// One baseline for each type of job and phase: what the facility draws beside the IT while that runs, with an interval,
// learned as it runs. A change of phase is an anchor: what answers it is a transient, foretold by the facility's lags
// and never an anomaly. Every version has a hash, and the same inputs make the same hash.

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "core/workload.h"
#include "facility/conformal.h"
#include "facility/felt.h"
#include "facility/recursive.h"
#include "facility/response.h"

namespace flyball::facility {

struct PhaseKey {
  std::string job_type;
  Phase phase = Phase::unknown;
  auto operator<=>(const PhaseKey&) const = default;
};

struct LibraryOptions {
  Watts it_rating;  ///< the size of things; required
  Celsius air_middle = Celsius(15), air_spread = Celsius(8);
  /// Time to answer the load (`find_lags`), dead time apart.
  Seconds dead_time, first_lag, second_lag;
  /// A point teaches only after so long: what deviates must not become the norm while one looks.
  Seconds delay = Seconds(6 * 3600.0);
  double level = 0.9;
  Seconds drift_memory = Seconds(3 * 86400.0);
};

struct Expectation {
  Watts expected, low, high;
  bool transient = false;  ///< the facility is still answering a change of phase
  bool learned = false;    ///< enough of this phase was seen for the interval to mean something
  /// Outside the interval, learned, and no transient.
  bool deviates = false;
};

/// Not for threads. Points come in order of time, at any distance from seconds to hours.
class PhaseLibrary {
 public:
  static Result<PhaseLibrary> make(const LibraryOptions& options);
  /// With what all phases share: a phase's baseline is then what it draws beside that. The response's rating and times
  /// hold.
  static Result<PhaseLibrary> make(LibraryOptions options, ResponseModel response);

  /// From now on this runs. The same key again changes nothing.
  void phase(WallTime at, const PhaseKey& key);
  /// Learns from the points that are `delay` old; then what the facility should draw at this one.
  Expectation take(const FacilityPoint& point);

  /// From now on it expects and no longer learns: a reference for what drifts.
  void freeze() { frozen_ = true; }
  /// Learns at once all that it has taken.
  void settle();
  /// Null without one.
  const ResponseModel* response() const { return response_ ? &*response_ : nullptr; }
  /// Of the point taken last; only with a response.
  const ResponseModel::Moment& moment() const { return moment_; }

  struct Entry {
    PhaseKey key;
    std::uint64_t points = 0;
    double coverage_fraction = 0;  ///< of points outside transients; NaN before the first
    double radius = 0;             ///< half-width in the forecast's sd
  };
  std::vector<Entry> entries() const;

  /// All that is known, as text: the same points in the same order make the same text, to the last bit.
  std::string text() const;

 private:
  struct Baseline {
    AdaptiveRegression model;
    RollingInterval settled, unsettled;
    std::uint64_t points = 0;
    std::size_t waiting = 0;                           ///< taken and not yet learned
    double noise = 0;                                  ///< sd of errors, as far as seen, in ratings
    double last_error = 0, products = 0, squares = 0;  ///< of errors in turn, older ones fading

    /// Of an independent observation that says as much as one of these, which err alike.
    double independent_noise() const;
  };
  explicit PhaseLibrary(const LibraryOptions& options);
  static constexpr std::size_t kTerms = 6;
  struct Pending {
    PhaseKey key;
    WallTime at;
    std::array<double, kTerms> x{};
    ResponseModel::Moment moment;
    double beside = 0;  ///< facility less what is known (the IT), in ratings
    AdaptiveRegression::Mixed foretold, shared;
    bool transient = false, inside = false;
    std::size_t before = 0;  ///< of its phase, told and not learned yet when it was told
    double mean() const { return foretold.mean + shared.mean; }
    double sd() const;
  };
  Baseline& baseline(const PhaseKey& key);
  void learn(const Pending& pending);

  LibraryOptions options_;
  std::map<PhaseKey, Baseline> baselines_;
  PhaseKey now_;
  bool frozen_ = false;
  std::deque<Pending> pending_;
  std::optional<WallTime> changed_;
  FeltLoad felt_;
  std::optional<ResponseModel> response_;
  ResponseModel::Moment moment_;
  RollingInterval settled_, unsettled_;  ///< of all phases: where a new one starts
  double noise_;
};

/// A version of a library or baseline, as the ledger keeps it.
struct BaselineVersion {
  std::string hash;         ///< of all below and the content: SHA-256
  std::string parent;       ///< hash of the version that this replaces; empty: the first
  std::string inputs_hash;  ///< of what it was learned from
  std::string reason;       ///< why it was made
  WallTime valid_from;
  std::string content;
};

/// Its hash follows from the rest, so that a version can be checked and made again.
BaselineVersion version_of(std::string content, std::string inputs_hash, std::string parent, std::string reason,
                           WallTime valid_from);
/// The hash is that of the rest.
bool is_sound(const BaselineVersion& version);

}  // namespace flyball::facility
