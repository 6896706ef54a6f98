#include "guard/hold.h"

#include <algorithm>

#include "guard/limit_range.h"

namespace flyball::guard {
namespace {

template <class T>
bool same_sample(const Sample<T>& a, const Sample<T>& b) {
  return a.status == b.status && (!a.ok() || a.value == b.value);
}

}  // namespace

bool Snapshot::operator==(const Snapshot& o) const {
  return same_sample(requested, o.requested) && same_sample(enforced, o.enforced) &&
         same_sample(persistence, o.persistence) && epoch == o.epoch && last_writer == o.last_writer &&
         taken == o.taken;
}

std::optional<Milliwatts> Snapshot::limit() const {
  if (is_known(requested)) return requested.value;
  if (is_known(enforced)) return enforced.value;
  return std::nullopt;
}

bool Hold::operator==(const Hold& o) const {
  return device == o.device && kind == o.kind && owner == o.owner && found == o.found && safe_cap == o.safe_cap &&
         parked == o.parked && clocks_locked == o.clocks_locked && accepted == o.accepted && intents == o.intents &&
         sticky == o.sticky;
}

bool same_limit(Milliwatts a, Milliwatts b, Milliwatts rounding) {
  const Milliwatts difference = a < b ? b - a : a - b;
  return difference <= rounding;
}

bool Hold::is_ours(Milliwatts requested, Milliwatts rounding) const {
  if (accepted && same_limit(*accepted, requested, rounding)) return true;
  return std::any_of(intents.begin(), intents.end(),
                     [&](Milliwatts intent) { return same_limit(intent, requested, rounding); });
}

void Hold::add_intent(Milliwatts limit) {
  constexpr std::size_t kMost = 8;  // a stuck call and its successors; more would mistake a stranger's write for ours
  if (std::find(intents.begin(), intents.end(), limit) != intents.end()) return;
  if (intents.size() == kMost) intents.erase(intents.begin());
  intents.push_back(limit);
}

std::optional<Milliwatts> Hold::resting_limit() const {
  const auto limit = found.limit();
  if (!limit || kind == LeaseKind::saving) return limit;
  return std::min(*limit, safe_cap);
}

}  // namespace flyball::guard
