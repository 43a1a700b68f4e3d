// Finds the name that somebody probably meant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lmemo {

// The nearest of `names`, or nullopt if none is near enough to be worth a suggestion.
std::optional<std::string> near_name(std::string_view given, const std::vector<std::string>& names);

// Of `names` the one that is one slip away: for a name that may as well be somebody else's.
std::optional<std::string> mistyped_name(std::string_view given, const std::vector<std::string>& names);

// " Did you mean \"show\"?" or nothing.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& names);

}  // namespace lmemo
