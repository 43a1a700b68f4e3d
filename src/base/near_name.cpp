#include "base/near_name.h"

#include <algorithm>
#include <limits>

namespace lmemo {
namespace {

// Insertions, deletions, replacements and swaps of neighbours ("shwo") each cost one.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

constexpr size_t kMaxNameBytes = 64;  // Nobody misspells a longer name; it also bounds the work.

}  // namespace

std::optional<std::string> near_name(std::string_view given, const std::vector<std::string>& names) {
  if (given.empty() || given.size() > kMaxNameBytes) return std::nullopt;
  std::optional<std::string> nearest;
  size_t least = std::numeric_limits<size_t>::max();
  for (const std::string& name : names) {
    const bool is_prefix = given.size() >= 2 && name.starts_with(given);
    const size_t distance = is_prefix ? 1 : edit_distance(given, name);
    const size_t tolerated = std::max<size_t>(1, std::max(given.size(), name.size()) / 3);
    if (distance <= tolerated && distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::optional<std::string> mistyped_name(std::string_view given, const std::vector<std::string>& names) {
  if (given.size() > kMaxNameBytes) return std::nullopt;
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const std::string& name) { return edit_distance(given, name) == 1; });
  return found == names.end() ? std::nullopt : std::optional(*found);
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& names) {
  const std::optional<std::string> nearest = near_name(given, names);
  return nearest ? " Did you mean \"" + *nearest + "\"?" : "";
}

}  // namespace lmemo
