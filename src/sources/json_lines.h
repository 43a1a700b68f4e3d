// The fields of JSON lines: a text, a prompt with its completion, or the messages of a chat.
//
//   JsonLineParser parser;                                   // One per thread: it keeps its memory.
//   std::string_view text;
//   const LineVerdict verdict = parser.text(line.text, *FieldPath::parse("meta.body"), text);
//   if (verdict.problem != LineProblem::none)
//     problems.note(file, line.number, verdict);             // Counted, the first ones named; never fatal.
//
// The rule: a line is good if Python's json.loads takes it, and what is read is what Python would read. So the last of
// several equal keys counts, and NaN, Infinity and numbers of any length may stand in other fields. One exception:
// half of a surrogate pair (\ud800 alone), which Python lets pass and no tokenizer can encode, is a problem.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/result.h"
#include "sources/line_blocks.h"

namespace lmemo {

enum class LineProblem : uint8_t {
  none,
  broken_json,
  invalid_utf8,
  lone_surrogate,
  not_an_object,
  missing_field,
  wrong_type,
  wrong_role,  // A message without a role, or with one that is no text.
  too_long,
};
inline constexpr size_t kLineProblems = 9;
std::string_view name_of(LineProblem problem);  // "broken JSON", …

struct LineVerdict {
  LineProblem problem = LineProblem::none;
  std::string detail = {};  // "field \"text\" is a number, expected a string"
  bool ok() const { return problem == LineProblem::none; }
};

// "text", or with dots into objects: "meta.body". A key that has the whole name, dots and all, comes first.
struct FieldPath {
  std::string name;
  std::vector<std::string> keys;
  // Refuses an empty name and empty parts.
  static Result<FieldPath> parse(std::string_view name);
};

struct ChatMessage {
  std::string_view role;
  std::string_view content;
};

// Views live until the next call or the end of the line's bytes.
// Requires of every line: kLinePadding readable bytes behind it, as lines of a LineBlock have.
class JsonLineParser {
 public:
  JsonLineParser();
  ~JsonLineParser();
  JsonLineParser(JsonLineParser&&) noexcept;
  JsonLineParser& operator=(JsonLineParser&&) noexcept;

  LineVerdict text(std::string_view line, const FieldPath& path, std::string_view& text);
  LineVerdict texts(std::string_view line, const FieldPath& first_path, const FieldPath& second_path,
                    std::string_view& first, std::string_view& second);
  // A list of objects with a role and a content, both strings. A content that is a list of text parts
  // ({"type": "text", "text": …}), as multimodal chats have it, is joined.
  LineVerdict messages(std::string_view line, const FieldPath& path, std::vector<ChatMessage>& messages);
  // The same fields as canonical JSON, whatever else a message has (tool calls, names): for whoever renders it elsewhere,
  // and for its identity. `extra` is a field beside it that may be missing; the empty name is none.
  LineVerdict messages_json(std::string_view line, const FieldPath& path, std::string_view extra,
                            std::string& json);
  // The names of the line's fields, for an error message that helps.
  std::vector<std::string> field_names(std::string_view line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What was wrong with how many lines, and the first few by name.
class LineProblems {
 public:
  static constexpr size_t kNamed = 10;

  void note(std::string_view file, uint64_t line, const LineVerdict& verdict);
  void note(std::string_view file, uint64_t line,
            std::string_view what);     // Under a name of the caller's own.
  void add(const LineProblems& later);  // What comes after all that is in here.

  uint64_t total() const { return total_; }
  const std::vector<std::pair<std::string, uint64_t>>& counts() const {
    return counts_;
  }  // By problem, as first met.
  const std::vector<std::string>& named() const { return named_; }  // "data.jsonl:17: broken JSON: …"

 private:
  void count(std::string_view problem, uint64_t lines);

  uint64_t total_ = 0;
  std::vector<std::pair<std::string, uint64_t>> counts_;
  std::vector<std::string> named_;
};

}  // namespace lmemo
