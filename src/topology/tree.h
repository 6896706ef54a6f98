#pragma once
// Who feeds whom, from the utility down to the GPU, and which meter sees what. A part may have several feeds (A and B),
// so this is a tree whose branches may join again; nothing feeds itself.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace flyball::topology {

/// From the top down; a part is fed by parts of an earlier kind only. `cooling` stands beside the IT branch: it may be
/// fed by anything down to a PDU and feeds nothing.
enum class PartKind : std::uint8_t { utility, generator, storage, feed, ups, pdu, rack, node, gpu, cooling };
std::string_view to_string(PartKind kind);

struct PartSpec {
  std::string name;
  PartKind kind = PartKind::node;
  std::vector<std::string> fed_by;  ///< empty for utility, generator and storage only
  Watts rating;                     ///< continuous; 0: not stated
};

/// Sees all that flows into its part.
struct MeterSpec {
  std::string name;
  std::string part;
};

using PartIndex = std::uint32_t;

struct Part {
  std::string name;
  PartKind kind;
  Watts rating;
  std::vector<PartIndex> fed_by, feeds;
};

struct Meter {
  std::string name;
  PartIndex part;
};

class Tree {
 public:
  static constexpr std::size_t kMostParts = 500'000;
  static constexpr std::size_t kMostFeeds = 4;  ///< of one part

  /// Refused: a name twice, a feed that is not there, a part fed from below or by its like, a part without a feed, a
  /// meter on a part that is not there, two meters on one part. Feeds may be named before they are defined.
  static Result<Tree> make(const std::vector<PartSpec>& parts, const std::vector<MeterSpec>& meters);

  std::span<const Part> parts() const { return parts_; }
  std::span<const Meter> meters() const { return meters_; }
  Result<PartIndex> find(std::string_view name) const;
  Result<std::size_t> find_meter(std::string_view name) const;
  /// Everything that feeds it, directly or not, each once.
  std::vector<PartIndex> above(PartIndex part) const;

 private:
  std::vector<Part> parts_;
  std::vector<Meter> meters_;
  std::vector<std::pair<std::string, PartIndex>> by_name_;  ///< sorted
};

}  // namespace flyball::topology
