#include "sources/glob.h"

#include <algorithm>

#include "base/utf8.h"

namespace lmemo {
namespace {

constexpr std::string_view kAnywhere = "**/";

size_t character_length(std::string_view text) { return std::max<size_t>(1, utf8_length(text.substr(0, 4))); }

// Reads "[a-z]" at the front of the pattern. False if it is not closed: then the bracket means itself.
bool read_class(std::string_view pattern, unsigned char byte, size_t& pattern_bytes, bool& is_match) {
  size_t at = 1;
  const bool is_negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (is_negated) ++at;
  bool is_found = false;
  for (bool is_first = true; at < pattern.size() && (is_first || pattern[at] != ']'); is_first = false) {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    const auto low = static_cast<unsigned char>(pattern[at++]);
    unsigned char high = low;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      ++at;
      if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
      high = static_cast<unsigned char>(pattern[at++]);
    }
    is_found = is_found || (low <= byte && byte <= high);
  }
  if (at >= pattern.size()) return false;
  pattern_bytes = at + 1;
  is_match = is_found != is_negated && byte != '/';
  return true;
}

// One step inside a part of the path: how much of the pattern and of the text one character takes. False: no match.
bool match_one(std::string_view pattern, std::string_view text, GlobDialect dialect, size_t& pattern_bytes,
               size_t& text_bytes) {
  pattern_bytes = text_bytes = 1;
  if (pattern[0] == '?') {
    text_bytes = character_length(text);
    return true;
  }
  if (dialect == GlobDialect::ignore && pattern[0] == '[') {
    bool is_match = false;
    if (read_class(pattern, static_cast<unsigned char>(text[0]), pattern_bytes, is_match)) return is_match;
  }
  if (dialect == GlobDialect::ignore && pattern[0] == '\\' && pattern.size() > 1) {
    pattern_bytes = 2;
    return pattern[1] == text[0];
  }
  return pattern[0] == text[0];
}

// One part of a path, without slashes. Going back to the last star only keeps it from being exponential.
bool part_matches(std::string_view pattern, std::string_view text, GlobDialect dialect) {
  size_t p = 0, t = 0, star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    size_t pattern_bytes = 0, text_bytes = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() &&
               match_one(pattern.substr(p), text.substr(t), dialect, pattern_bytes, text_bytes)) {
      p += pattern_bytes;
      t += text_bytes;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      star_text += character_length(text.substr(star_text));
      t = star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// The first part, and what follows its slash; the rest is null behind the last part.
struct Split {
  std::string_view part, rest;
  bool is_last;
};
Split split(std::string_view path) {
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return {path, {}, true};
  return {path.substr(0, slash), path.substr(slash + 1), false};
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view path, GlobDialect dialect) {
  // The same walk as within a part, a level higher: `**` is the star, parts are the characters.
  std::string_view behind_star, star_path;
  bool has_star = false, pattern_is_over = false, path_is_over = false;
  while (!path_is_over) {
    if (!pattern_is_over) {
      const Split wanted = split(pattern);
      if (wanted.part == "**") {
        if (wanted.is_last) return true;
        has_star = true;
        behind_star = pattern = wanted.rest;
        star_path = path;
        continue;
      }
      const Split found = split(path);
      if (part_matches(wanted.part, found.part, dialect)) {
        pattern = wanted.rest, pattern_is_over = wanted.is_last;
        path = found.rest, path_is_over = found.is_last;
        continue;
      }
    }
    if (!has_star) return false;
    const Split skipped = split(star_path);
    if (skipped.is_last) return false;
    path = star_path = skipped.rest;
    pattern = behind_star;
    pattern_is_over = false;
  }
  return pattern_is_over;
}

GlobSet::GlobSet(const std::vector<std::string>& patterns) : is_empty_(patterns.empty()) {
  for (const std::string& pattern : patterns) {
    const auto is_plain = [](std::string_view text) {
      return text.find_first_of("*?/") == std::string_view::npos;
    };
    const std::string_view rest =
        std::string_view(pattern).substr(pattern.starts_with(kAnywhere) ? kAnywhere.size() : 0);
    if (pattern == "**" || pattern == "**/*") {
      matches_all_ = true;
    } else if (rest.size() == pattern.size()) {
      others_.push_back(pattern);
    } else if (is_plain(rest)) {
      names_.emplace(rest);
    } else if (rest.starts_with("*.") && is_plain(rest.substr(2)) &&
               rest.find('.', 2) == std::string_view::npos) {
      extensions_.emplace(rest.substr(2));
    } else {
      others_.push_back(pattern);
    }
  }
}

bool GlobSet::matches(std::string_view path) const {
  if (matches_all_) return true;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!names_.empty() && names_.contains(name)) return true;
  if (!extensions_.empty())
    if (const size_t dot = name.rfind('.');
        dot != std::string_view::npos && extensions_.contains(name.substr(dot + 1)))
      return true;
  return std::any_of(others_.begin(), others_.end(),
                     [&](const std::string& pattern) { return glob_matches(pattern, path); });
}

}  // namespace lmemo
