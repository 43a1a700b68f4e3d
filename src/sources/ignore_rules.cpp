#include "sources/ignore_rules.h"

#include <ranges>

#include "sources/glob.h"

namespace lmemo {
namespace {

// Blanks at the end do not count, unless the last is escaped.
std::string_view without_blanks(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  while (line.ends_with(' ') && !line.ends_with("\\ ")) line.remove_suffix(1);
  return line;
}

}  // namespace

std::shared_ptr<const IgnoreRules> IgnoreRules::read(std::string_view file, std::string_view directory,
                                                     std::shared_ptr<const IgnoreRules> above) {
  auto rules = std::make_shared<IgnoreRules>();
  rules->directory_ = directory;
  rules->above_ = std::move(above);
  if (file.starts_with("\xEF\xBB\xBF")) file.remove_prefix(3);
  while (!file.empty()) {
    const size_t end = std::min(file.find('\n'), file.size());
    std::string_view line = without_blanks(file.substr(0, end));
    file.remove_prefix(std::min(end + 1, file.size()));
    if (line.empty() || line.starts_with('#')) continue;
    Rule rule;
    if (line.starts_with('!')) {
      rule.is_negated = true;
      line.remove_prefix(1);
    }
    if (line.ends_with('/')) {
      rule.is_for_directories = true;
      line.remove_suffix(1);
    }
    if (line.empty()) continue;
    // A slash at the front or in the middle ties the pattern to this directory.
    if (line.starts_with('/'))
      rule.pattern = line.substr(1);
    else
      rule.pattern = line.find('/') == std::string_view::npos ? "**/" + std::string(line) : std::string(line);
    rules->rules_.push_back(std::move(rule));
  }
  return rules;
}

std::optional<bool> IgnoreRules::verdict(std::string_view path, bool is_directory) const {
  const std::string_view below = path.substr(directory_.size());
  for (const Rule& rule : rules_ | std::views::reverse)
    if ((is_directory || !rule.is_for_directories) && glob_matches(rule.pattern, below, GlobDialect::ignore))
      return !rule.is_negated;
  return above_ ? above_->verdict(path, is_directory) : std::nullopt;
}

bool IgnoreRules::ignores(std::string_view path, bool is_directory) const {
  return verdict(path, is_directory).value_or(false);
}

}  // namespace lmemo
