#include "topology/totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace flyball::topology {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// Which of the meters is on each part; kNone: none of them.
std::vector<std::size_t> meter_of_part(const Tree& tree, std::span<const std::size_t> meters) {
  std::vector<std::size_t> made(tree.parts().size(), kNone);
  for (const std::size_t m : meters) made[tree.meters()[m].part] = m;
  return made;
}

std::vector<std::size_t> all_meters(const Tree& tree) {
  std::vector<std::size_t> made(tree.meters().size());
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = i;
  return made;
}

/// The share of what flows into each part that the seen parts see; feeds share alike.
class Coverage {
 public:
  Coverage(const Tree& tree, std::vector<char> seen) : tree_(tree), seen_(std::move(seen)) {
    known_.assign(tree.parts().size(), -1);
  }
  double of(PartIndex part) {
    if (known_[part] >= 0) return known_[part];
    double share = seen_[part] != 0 ? 1 : 0;
    const auto& feeds = tree_.parts()[part].fed_by;
    if (share == 0 && !feeds.empty()) {
      for (const PartIndex feed : feeds) share += of(feed);
      share /= static_cast<double>(feeds.size());
    }
    return known_[part] = share;
  }

 private:
  const Tree& tree_;
  std::vector<char> seen_;
  std::vector<double> known_;
};

double coverage_of_ends(const Tree& tree, std::vector<char> seen) {
  // What lies below a seen part is covered; so is a source whose loads are all seen, hence the ends count, not the
  // tops.
  Coverage coverage(tree, std::move(seen));
  double sum = 0;
  std::size_t ends = 0;
  for (PartIndex i = 0; i < tree.parts().size(); ++i) {
    if (!tree.parts()[i].feeds.empty()) continue;
    sum += coverage.of(i);
    ++ends;
  }
  return ends == 0 ? 0 : sum / static_cast<double>(ends);
}

/// Parts that are linked by a common load, with the smallest index standing for the group.
class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count) {
    for (PartIndex i = 0; i < count; ++i) parent_[i] = i;
  }
  PartIndex find(PartIndex i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(PartIndex a, PartIndex b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<PartIndex> parent_;
};

}  // namespace

Result<Total> total_of(const Tree& tree, std::span<const std::size_t> meters, Readings readings) {
  const std::vector<std::size_t> on = meter_of_part(tree, meters);
  Total total;
  std::vector<char> seen(tree.parts().size());
  for (const std::size_t m : meters) {
    const Meter& meter = tree.meters()[m];
    for (const PartIndex above : tree.above(meter.part))
      if (on[above] != kNone)
        return fail(
            ErrorCode::input,
            fmt::format("'{}' (on {} '{}') is seen by '{}' (on {} '{}') too: its energy would count twice", meter.name,
                        to_string(tree.parts()[meter.part].kind), tree.parts()[meter.part].name,
                        tree.meters()[on[above]].name, to_string(tree.parts()[above].kind), tree.parts()[above].name),
            {}, "choose one level for a total");
    if (!readings[m]) {
      total.silent.push_back(meter.name);
      continue;
    }
    total.power += *readings[m];
    ++total.meters;
    seen[meter.part] = 1;
  }
  total.coverage_fraction = coverage_of_ends(tree, std::move(seen));
  return total;
}

Result<Total> total_at(const Tree& tree, PartKind level, bool cooling, Readings readings) {
  std::vector<std::size_t> chosen;
  for (std::size_t m = 0; m < tree.meters().size(); ++m)
    if (tree.parts()[tree.meters()[m].part].kind == level) chosen.push_back(m);
  if (chosen.empty()) return fail(ErrorCode::input, fmt::format("there is no meter on a {}", to_string(level)));
  if (cooling && level != PartKind::cooling) {
    const std::vector<std::size_t> on = meter_of_part(tree, chosen);
    for (std::size_t m = 0; m < tree.meters().size(); ++m) {
      const PartIndex part = tree.meters()[m].part;
      if (tree.parts()[part].kind != PartKind::cooling) continue;
      const auto above = tree.above(part);
      if (std::none_of(above.begin(), above.end(), [&](PartIndex p) { return on[p] != kNone; })) chosen.push_back(m);
    }
  }
  return total_of(tree, chosen, readings);
}

std::vector<Balance> balances(const Tree& tree, Readings readings) {
  const std::vector<std::size_t> on = meter_of_part(tree, all_meters(tree));
  Groups groups(tree.parts().size());
  for (const Part& part : tree.parts())
    for (std::size_t i = 1; i < part.fed_by.size(); ++i) groups.join(part.fed_by[0], part.fed_by[i]);
  std::vector<std::vector<PartIndex>> members(tree.parts().size());
  for (PartIndex i = 0; i < tree.parts().size(); ++i)
    if (!tree.parts()[i].feeds.empty()) members[groups.find(i)].push_back(i);
  const auto said = [&](PartIndex part) { return on[part] != kNone && readings[on[part]].has_value(); };
  std::vector<Balance> made;
  for (const auto& sources : members) {
    if (sources.empty() || !std::all_of(sources.begin(), sources.end(), said)) continue;
    Balance balance{sources, {}, {}, {}, 0};
    std::size_t metered = 0;
    for (const PartIndex source : sources) {
      balance.in += *readings[on[source]];
      for (const PartIndex load : tree.parts()[source].feeds) balance.loads.push_back(load);
    }
    std::sort(balance.loads.begin(), balance.loads.end());
    balance.loads.erase(std::unique(balance.loads.begin(), balance.loads.end()), balance.loads.end());
    for (const PartIndex load : balance.loads)
      if (said(load)) {
        balance.out += *readings[on[load]];
        ++metered;
      }
    if (metered == 0) continue;
    balance.coverage_fraction = static_cast<double>(metered) / static_cast<double>(balance.loads.size());
    made.push_back(std::move(balance));
  }
  return made;
}

std::vector<PartIndex> over_rating(const Tree& tree, Readings readings) {
  std::vector<PartIndex> made;
  for (std::size_t m = 0; m < tree.meters().size(); ++m) {
    const Part& part = tree.parts()[tree.meters()[m].part];
    if (part.rating > Watts(0) && readings[m] && *readings[m] > part.rating) made.push_back(tree.meters()[m].part);
  }
  return made;
}

}  // namespace flyball::topology
