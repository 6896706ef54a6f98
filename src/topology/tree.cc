#include "topology/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace flyball::topology {
namespace {

bool is_source(PartKind kind) {
  return kind == PartKind::utility || kind == PartKind::generator || kind == PartKind::storage;
}

bool may_feed(PartKind from, PartKind to) {
  if (from == PartKind::cooling || is_source(to)) return false;
  if (to == PartKind::cooling) return from <= PartKind::pdu;
  return from < to;
}

Result<> check_feeds(const PartSpec& spec) {
  if (spec.name.empty()) return fail(ErrorCode::input, "a part has no name");
  if (spec.rating < Watts(0) || !spec.rating.finite())
    return fail(ErrorCode::input, "the rating is not a power", spec.name, "give it in watts, or 0 for not stated");
  if (is_source(spec.kind) != spec.fed_by.empty())
    return fail(ErrorCode::input,
                spec.fed_by.empty()
                    ? fmt::format("a {} needs a feed", to_string(spec.kind))
                    : fmt::format("a {} is where power comes from and has no feed", to_string(spec.kind)),
                spec.name);
  if (spec.fed_by.size() > Tree::kMostFeeds)
    return fail(ErrorCode::input, fmt::format("{} feeds; at most {}", spec.fed_by.size(), Tree::kMostFeeds), spec.name);
  return {};
}

}  // namespace

std::string_view to_string(PartKind kind) {
  static constexpr std::string_view kNames[] = {"utility", "generator", "storage", "feed", "ups",
                                                "pdu",     "rack",      "node",    "gpu",  "cooling"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<Tree> Tree::make(const std::vector<PartSpec>& parts, const std::vector<MeterSpec>& meters) {
  if (parts.size() > kMostParts)
    return fail(ErrorCode::input, fmt::format("{} parts; at most {}", parts.size(), kMostParts));
  Tree tree;
  for (const PartSpec& spec : parts) {
    FLYBALL_TRY(check_feeds(spec));
    tree.by_name_.emplace_back(spec.name, static_cast<PartIndex>(tree.parts_.size()));
    tree.parts_.push_back({spec.name, spec.kind, spec.rating, {}, {}});
  }
  std::sort(tree.by_name_.begin(), tree.by_name_.end());
  for (std::size_t i = 1; i < tree.by_name_.size(); ++i)
    if (tree.by_name_[i].first == tree.by_name_[i - 1].first)
      return fail(ErrorCode::input, "two parts have this name", tree.by_name_[i].first);
  for (PartIndex i = 0; i < parts.size(); ++i)
    for (const std::string& name : parts[i].fed_by) {
      auto feed = tree.find(name);
      if (!feed) return fail(ErrorCode::input, fmt::format("its feed '{}' is not there", name), parts[i].name);
      if (!may_feed(tree.parts_[*feed].kind, parts[i].kind))
        return fail(ErrorCode::input,
                    fmt::format("a {} is not fed by a {} ('{}')", to_string(parts[i].kind),
                                to_string(tree.parts_[*feed].kind), name),
                    parts[i].name, "feeds go from the utility down: utility, feed, ups, pdu, rack, node, gpu");
      auto& above = tree.parts_[i].fed_by;
      if (std::find(above.begin(), above.end(), *feed) != above.end())
        return fail(ErrorCode::input, fmt::format("its feed '{}' is named twice", name), parts[i].name);
      above.push_back(*feed);
      tree.parts_[*feed].feeds.push_back(i);
    }
  std::vector<const std::string*> metered(parts.size());
  for (const MeterSpec& meter : meters) {
    auto part = tree.find(meter.part);
    if (!part) return fail(ErrorCode::input, fmt::format("its part '{}' is not there", meter.part), meter.name);
    if (metered[*part] != nullptr)
      return fail(ErrorCode::input,
                  fmt::format("'{}' and '{}' are both on '{}'", *metered[*part], meter.name, meter.part), meter.name,
                  "choose one, or give each side of the part its own part");
    metered[*part] = &meter.name;
    tree.meters_.push_back({meter.name, *part});
  }
  return tree;
}

Result<PartIndex> Tree::find(std::string_view name) const {
  const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [](const auto& entry, std::string_view n) { return entry.first < n; });
  if (at == by_name_.end() || at->first != name)
    return fail(ErrorCode::input, fmt::format("there is no part '{}'", name));
  return at->second;
}

Result<std::size_t> Tree::find_meter(std::string_view name) const {
  for (std::size_t i = 0; i < meters_.size(); ++i)
    if (meters_[i].name == name) return i;
  return fail(ErrorCode::input, fmt::format("there is no meter '{}'", name));
}

std::vector<PartIndex> Tree::above(PartIndex part) const {
  // At most a few hundred: depth times feeds.
  std::vector<PartIndex> found = parts_[part].fed_by;
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const PartIndex next : parts_[found[i]].fed_by)
      if (std::find(found.begin(), found.end(), next) == found.end()) found.push_back(next);
  return found;
}

}  // namespace flyball::topology
