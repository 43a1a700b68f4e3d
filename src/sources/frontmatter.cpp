#include "sources/frontmatter.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <initializer_list>

#include "base/units.h"

namespace lmemo {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr size_t kMaxDepth = 64;  // yaml-cpp recurses: a deep document would end the process.

Error complaint(const YAML::Node& node, const std::string& name, const std::string& expected) {
  const YAML::Mark mark = node.Mark();
  const std::string line = mark.is_null() ? "" : ", line " + std::to_string(mark.line + 2);
  std::string found = node.IsMap()        ? "a mapping"
                      : node.IsSequence() ? "a list"
                      : node.IsNull()     ? "nothing"
                                          : "\"" + node.Scalar().substr(0, 60) + "\"";
  return {ErrorCode::invalid_argument,
          "frontmatter" + line + ": " + name + ": found " + found + "; expected " + expected};
}

// Brackets and indentation are the only ways to nest.
bool is_too_deep(std::string_view yaml) {
  size_t brackets = 0, deepest = 0;
  for (size_t at = 0; at < yaml.size(); ++at) {
    if (yaml[at] == '[' || yaml[at] == '{') deepest = std::max(deepest, ++brackets);
    if ((yaml[at] == ']' || yaml[at] == '}') && brackets > 0) --brackets;
    if (yaml[at] == '\n' || at == 0) {
      size_t indent = at + (yaml[at] == '\n'), dashes = 0;
      for (; indent < yaml.size() &&
             (yaml[indent] == ' ' || yaml[indent] == '-' || yaml[indent] == '?' || yaml[indent] == ':');
           ++indent)
        dashes += yaml[indent] != ' ';
      deepest = std::max({deepest, dashes, (indent - at) / 1 > 4 * kMaxDepth ? kMaxDepth + 1 : 0});
    }
  }
  return deepest > kMaxDepth;
}

class Reader {
 public:
  Result<Frontmatter> read(const YAML::Node& top) {
    if (top.IsNull()) return result_;
    if (!top.IsMap()) return complaint(top, "the whole", "a mapping");
    if (const YAML::Node id = top["dlm_id"]; id && id.IsScalar()) result_.id = id.Scalar();
    const YAML::Node training = top["training"];
    if (!training || training.IsNull()) return result_;
    if (!training.IsMap()) return complaint(training, "training", "a mapping");
    LMEMO_TRY(read_count(training["sequence_len"], "training.sequence_len", result_.sequence_len));
    if (result_.sequence_len == 0)
      return complaint(training["sequence_len"], "training.sequence_len", "at least 1");
    if (const YAML::Node policy = training["sources_policy"]; policy && !policy.IsNull()) {
      if (!policy.IsScalar() || (policy.Scalar() != "strict" && policy.Scalar() != "permissive"))
        return complaint(policy, "training.sources_policy", "permissive or strict");
      result_.is_strict = policy.Scalar() == "strict";
    }
    if (const YAML::Node sources = training["sources"]; sources && !sources.IsNull()) {
      if (!sources.IsSequence()) return complaint(sources, "training.sources", "a list");
      for (const YAML::Node& source : sources) LMEMO_TRY(read_source(source));
    }
    if (const YAML::Node cache = training["cache"]; cache && !cache.IsNull()) {
      if (!cache.IsMap()) return complaint(cache, "training.cache", "a mapping");
      note_unknown(cache, "training.cache", {"enabled", "max_bytes", "prune_older_than_days"});
      if (const YAML::Node enabled = cache["enabled"]; enabled && !enabled.IsNull()) {
        bool value = true;
        if (!enabled.IsScalar() || !YAML::convert<bool>::decode(enabled, value))
          return complaint(enabled, "training.cache.enabled", "true or false");
        result_.cache_enabled = value;
      }
      LMEMO_TRY(read_bytes(cache["max_bytes"], "training.cache.max_bytes", result_.cache_max_bytes));
      LMEMO_TRY(read_count(cache["prune_older_than_days"], "training.cache.prune_older_than_days",
                           result_.prune_older_than_days));
    }
    return result_;
  }

 private:
  void note_unknown(const YAML::Node& mapping, const std::string& name,
                    std::initializer_list<std::string_view> known) {
    for (const auto& member : mapping) {
      const std::string key = member.first.IsScalar() ? member.first.Scalar() : "";
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      std::string names;
      for (const std::string_view each : known) names.append(names.empty() ? "" : ", ").append(each);
      result_.unknown.push_back("frontmatter, line " + std::to_string(member.first.Mark().line + 2) + ": " +
                                name + ": \"" + key.substr(0, 60) +
                                "\" is not known and has no effect; known are " + names);
    }
  }

  Status read_source(const YAML::Node& node) {
    DocumentSourceEntry entry;
    if (node.IsScalar()) {
      entry.path = node.Scalar();
    } else {
      if (!node.IsMap()) return complaint(node, "training.sources", "a mapping with a path");
      note_unknown(node, "training.sources",
                   {"path", "include", "exclude", "max_bytes_per_file", "max_files"});
      const YAML::Node path = node["path"];
      if (!path) return complaint(node, "training.sources", "one with a path");
      if (!path.IsScalar()) return complaint(path, "training.sources: path", "a text");
      entry.path = path.Scalar();
      LMEMO_TRY(read_texts(node["include"], "training.sources: include", entry.include));
      LMEMO_TRY(read_texts(node["exclude"], "training.sources: exclude", entry.exclude));
      LMEMO_TRY(read_bytes(node["max_bytes_per_file"], "training.sources: max_bytes_per_file",
                           entry.max_bytes_per_file));
      LMEMO_TRY(read_count(node["max_files"], "training.sources: max_files", entry.max_files));
    }
    if (entry.path.empty()) return complaint(node, "training.sources: path", "a text");
    result_.sources.push_back(std::move(entry));
    return {};
  }

  static Status read_texts(const YAML::Node& node, const std::string& name, std::vector<std::string>& texts) {
    if (!node || node.IsNull()) return {};
    if (node.IsScalar()) {
      texts.push_back(node.Scalar());
      return {};
    }
    if (!node.IsSequence()) return complaint(node, name, "a list of texts");
    for (const YAML::Node& text : node) {
      if (!text.IsScalar()) return complaint(text, name, "a list of texts");
      texts.push_back(text.Scalar());
    }
    return {};
  }
  static Status read_count(const YAML::Node& node, const std::string& name, std::optional<uint64_t>& count) {
    if (!node || node.IsNull()) return {};
    if (!node.IsScalar()) return complaint(node, name, "a whole number");
    const auto parsed = parse_count(node.Scalar());
    if (!parsed.ok()) return complaint(node, name, "a whole number");
    count = *parsed;
    return {};
  }
  static Status read_bytes(const YAML::Node& node, const std::string& name, std::optional<uint64_t>& bytes) {
    if (!node || node.IsNull()) return {};
    if (!node.IsScalar()) return complaint(node, name, "a size such as 10GiB");
    const auto parsed = parse_byte_count(node.Scalar());
    if (!parsed.ok()) return complaint(node, name, "a size such as 10GiB");
    bytes = *parsed;
    return {};
  }

  Frontmatter result_;
};

}  // namespace

Result<Frontmatter> parse_frontmatter(std::string_view document) {
  if (document.starts_with("\xEF\xBB\xBF")) document.remove_prefix(3);
  const auto line_end = [&](size_t from) { return std::min(document.find('\n', from), document.size()); };
  const auto is_fence = [&](size_t from) {
    std::string_view line = document.substr(from, line_end(from) - from);
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    return line == "---";
  };
  if (!is_fence(0)) return Frontmatter();
  const size_t begin = std::min(line_end(0) + 1, document.size());
  size_t end = begin;
  while (end < document.size() && !is_fence(end)) end = line_end(end) + 1;
  if (end >= document.size())
    return Error{ErrorCode::invalid_argument,
                 "frontmatter: begins with --- and never ends; expected a second line of ---"};
  const std::string_view yaml = document.substr(begin, end - begin);
  if (yaml.size() > kMaxBytes || is_too_deep(yaml))
    return Error{ErrorCode::invalid_argument, "frontmatter: longer than 1 MiB, or nested too deeply"};
  try {
    return Reader().read(YAML::Load(std::string(yaml)));
  } catch (const std::exception& error) {  // yaml-cpp throws, and so do conversions.
    return Error{ErrorCode::invalid_argument, std::string("frontmatter: ") + error.what()};
  }
}

}  // namespace lmemo
