#include "sources/json_lines.h"

#include <simdjson.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>

#include "sources/lenient_numbers.h"

namespace lmemo {
namespace {

namespace dom = simdjson::dom;

static_assert(kLinePadding >= simdjson::SIMDJSON_PADDING);

std::string_view type_name(dom::element_type type) {
  switch (type) {
    case dom::element_type::ARRAY: return "a list";
    case dom::element_type::OBJECT: return "an object";
    case dom::element_type::STRING: return "a string";
    case dom::element_type::BOOL: return "a boolean";
    case dom::element_type::NULL_VALUE: return "null";
    default: return "a number";
  }
}

LineVerdict wrong_type(const std::string& what, dom::element found, std::string_view expected) {
  return {LineProblem::wrong_type,
          what + " is " + std::string(type_name(found.type())) + ", expected " + std::string(expected)};
}

std::string in_quotes(std::string_view name) { return '"' + std::string(name) + '"'; }

// Of several equal keys the last counts, as for Python; simdjson's own lookup takes the first.
std::optional<dom::element> last_of(dom::object object, std::string_view key) {
  std::optional<dom::element> found;
  for (const auto [name, value] : object)
    if (name == key) found = value;
  return found;
}

std::optional<dom::element> field_at(dom::object object, const FieldPath& path) {
  if (std::optional<dom::element> whole = last_of(object, path.name)) return whole;
  std::optional<dom::element> value;
  for (const std::string& key : path.keys) {
    if (value) {
      if (value->get(object) != simdjson::SUCCESS) return std::nullopt;
    }
    value = last_of(object, key);
    if (!value) return std::nullopt;
  }
  return value;
}

// simdjson checks the bytes of a line, but \udc00 without its first half comes out as three bytes that are no UTF-8.
bool has_lone_surrogate(std::string_view text) {
  for (size_t at = 0; (at = text.find('\xed', at)) != std::string_view::npos; ++at)
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xa0) return true;
  return false;
}

// True for \uD800…\uDFFF without its other half; requires well-formed escapes.
bool has_lone_surrogate_escape(std::string_view line) {
  const auto half_at = [&](size_t at) -> int {  // 1: first half, 2: second half, 0: neither.
    if (at + 6 > line.size() || line[at] != '\\' || line[at + 1] != 'u') return 0;
    if ((line[at + 2] | 0x20) != 'd') return 0;
    const char digit = static_cast<char>(line[at + 3] | 0x20);
    if (digit == '8' || digit == '9' || digit == 'a' || digit == 'b') return 1;
    return digit >= 'c' && digit <= 'f' ? 2 : 0;
  };
  for (size_t at = line.find('\\'); at != std::string_view::npos && at + 1 < line.size();
       at = line.find('\\', at)) {
    switch (half_at(at)) {
      case 0: at += 2; break;
      case 1:
        if (half_at(at + 6) != 2) return true;
        at += 12;
        break;
      default: return true;
    }
  }
  return false;
}

LineVerdict string_of(dom::element value, const std::string& what, std::string_view& text) {
  if (value.get(text) != simdjson::SUCCESS) return wrong_type(what, value, "a string");
  if (has_lone_surrogate(text)) return {LineProblem::lone_surrogate, what + " has half of a surrogate pair"};
  return {};
}

}  // namespace

std::string_view name_of(LineProblem problem) {
  switch (problem) {
    case LineProblem::none: return "fine";
    case LineProblem::broken_json: return "broken JSON";
    case LineProblem::invalid_utf8: return "invalid UTF-8";
    case LineProblem::lone_surrogate: return "lone surrogate";
    case LineProblem::not_an_object: return "not an object";
    case LineProblem::missing_field: return "missing field";
    case LineProblem::wrong_type: return "wrong type";
    case LineProblem::wrong_role: return "wrong role";
    case LineProblem::too_long: return "too long";
  }
  return "unknown";
}

Result<FieldPath> FieldPath::parse(std::string_view name) {
  FieldPath path{std::string(name), {}};
  for (size_t begin = 0; begin <= name.size();) {
    const size_t dot = std::min(name.find('.', begin), name.size());
    if (dot == begin)
      return Error{
          ErrorCode::invalid_argument,
          "field " + in_quotes(name) + ": expected names with dots between them, such as text or meta.text"};
    path.keys.emplace_back(name.substr(begin, dot - begin));
    begin = dot + 1;
  }
  return path;
}

struct JsonLineParser::State {
  dom::parser parser;
  std::vector<char> copy;  // A line with its odd numbers replaced.
  bool is_copy = false;    // The last line was parsed from there.
  std::string joined;      // Contents made of several parts.

  LineVerdict object_of(std::string_view line, dom::object& object) {
    dom::element root;
    is_copy = false;
    simdjson::error_code error = parser.parse(line.data(), line.size(), false).get(root);
    if (error != simdjson::SUCCESS && error != simdjson::UTF8_ERROR && replace_odd_numbers(line, copy)) {
      is_copy = true;
      copy.resize(copy.size() + kLinePadding);
      error = parser.parse(copy.data(), copy.size() - kLinePadding, false).get(root);
    }
    if (error != simdjson::SUCCESS && !simdjson::validate_utf8(line.data(), line.size()))
      return {LineProblem::invalid_utf8, "the line is not UTF-8"};
    if (error == simdjson::STRING_ERROR && has_lone_surrogate_escape(line))
      return {LineProblem::lone_surrogate, "a string has half of a surrogate pair"};
    if (error != simdjson::SUCCESS) return {LineProblem::broken_json, simdjson::error_message(error)};
    if (root.get(object) != simdjson::SUCCESS)
      return {LineProblem::not_an_object, "the line is " + std::string(type_name(root.type()))};
    return {};
  }

  LineVerdict field_of(dom::object object, const FieldPath& path, dom::element& value) const {
    const std::optional<dom::element> found = field_at(object, path);
    if (!found) return {LineProblem::missing_field, "no field " + in_quotes(path.name)};
    value = *found;
    return {};
  }

  LineVerdict text_of(dom::object object, const FieldPath& path, std::string_view& text) const {
    dom::element value;
    if (LineVerdict verdict = field_of(object, path, value); !verdict.ok()) return verdict;
    if (value.get(text) == simdjson::SUCCESS && !has_lone_surrogate(text)) return {};
    return string_of(value, "field " + in_quotes(path.name), text);
  }

  // `contents` are joined behind one another; views into it are made when it does not grow any more.
  LineVerdict content_of(dom::element content, size_t index, std::string_view& text, bool& is_joined) {
    const auto what = [&] { return "message " + std::to_string(index + 1) + ": content"; };
    dom::array parts;
    if (content.get(parts) != simdjson::SUCCESS) {
      if (content.get(text) == simdjson::SUCCESS && !has_lone_surrogate(text)) return {};
      return string_of(content, what(), text);
    }
    is_joined = true;
    const size_t begin = joined.size();
    for (const dom::element part : parts) {
      dom::object fields;
      std::string_view type, piece;
      if (part.get(fields) != simdjson::SUCCESS) return wrong_type(what() + " part", part, "an object");
      const auto type_field = last_of(fields, "type");
      const auto text_field = last_of(fields, "text");
      if (!type_field || type_field->get(type) != simdjson::SUCCESS || type != "text" || !text_field)
        return {LineProblem::wrong_type, what() + " has a part that is not text"};
      if (LineVerdict verdict = string_of(*text_field, what(), piece); !verdict.ok()) return verdict;
      joined += piece;
    }
    text = {nullptr, joined.size() - begin};  // Where it is, is known when all were read.
    return {};
  }
};

JsonLineParser::JsonLineParser() : state_(std::make_unique<State>()) {}
JsonLineParser::~JsonLineParser() = default;
JsonLineParser::JsonLineParser(JsonLineParser&&) noexcept = default;
JsonLineParser& JsonLineParser::operator=(JsonLineParser&&) noexcept = default;

LineVerdict JsonLineParser::text(std::string_view line, const FieldPath& path, std::string_view& text) {
  dom::object object;
  if (LineVerdict verdict = state_->object_of(line, object); !verdict.ok()) return verdict;
  return state_->text_of(object, path, text);
}

LineVerdict JsonLineParser::texts(std::string_view line, const FieldPath& first_path,
                                  const FieldPath& second_path, std::string_view& first,
                                  std::string_view& second) {
  dom::object object;
  if (LineVerdict verdict = state_->object_of(line, object); !verdict.ok()) return verdict;
  if (LineVerdict verdict = state_->text_of(object, first_path, first); !verdict.ok()) return verdict;
  return state_->text_of(object, second_path, second);
}

LineVerdict JsonLineParser::messages(std::string_view line, const FieldPath& path,
                                     std::vector<ChatMessage>& messages) {
  messages.clear();
  dom::object object;
  dom::element value;
  dom::array list;
  if (LineVerdict verdict = state_->object_of(line, object); !verdict.ok()) return verdict;
  if (LineVerdict verdict = state_->field_of(object, path, value); !verdict.ok()) return verdict;
  if (value.get(list) != simdjson::SUCCESS)
    return wrong_type("field " + in_quotes(path.name), value, "a list");

  state_->joined.clear();
  std::vector<size_t> joined_messages;
  for (const dom::element element : list) {
    const size_t index = messages.size();
    const auto what = [&] { return "message " + std::to_string(index + 1); };
    dom::object fields;
    if (element.get(fields) != simdjson::SUCCESS) return wrong_type(what(), element, "an object");
    const auto role = last_of(fields, "role");
    const auto content = last_of(fields, "content");
    if (!role) return {LineProblem::wrong_role, what() + " has no role"};
    if (!content) return {LineProblem::missing_field, what() + " has no content"};
    ChatMessage& message = messages.emplace_back();
    if (role->get(message.role) != simdjson::SUCCESS)
      return {LineProblem::wrong_role, what() + ": role is " + std::string(type_name(role->type()))};
    if (LineVerdict verdict = string_of(*role, what() + ": role", message.role); !verdict.ok())
      return verdict;
    bool is_joined = false;
    if (LineVerdict verdict = state_->content_of(*content, index, message.content, is_joined); !verdict.ok())
      return verdict;
    if (is_joined) joined_messages.push_back(index);
  }
  size_t at = 0;
  for (const size_t index : joined_messages) {
    const size_t length = messages[index].content.size();
    messages[index].content = std::string_view(state_->joined).substr(at, length);
    at += length;
  }
  return {};
}

LineVerdict JsonLineParser::messages_json(std::string_view line, const FieldPath& path,
                                          std::string_view extra, std::string& json) {
  dom::object object;
  dom::element value;
  if (LineVerdict verdict = state_->object_of(line, object); !verdict.ok()) return verdict;
  if (LineVerdict verdict = state_->field_of(object, path, value); !verdict.ok()) return verdict;
  if (!value.is_array()) return wrong_type("field " + in_quotes(path.name), value, "a list");
  if (state_->is_copy)
    return {LineProblem::broken_json, "the line has a number that 64 bits do not hold, NaN or Infinity"};
  json = "{\"messages\":" + simdjson::minify(value);
  if (!extra.empty())
    if (const auto beside = last_of(object, extra))
      json += ",\"" + std::string(extra) + "\":" + simdjson::minify(*beside);
  json += '}';
  if (has_lone_surrogate(json)) return {LineProblem::lone_surrogate, "a string has half of a surrogate pair"};
  return {};
}

std::vector<std::string> JsonLineParser::field_names(std::string_view line) {
  std::vector<std::string> names;
  dom::object object;
  if (!state_->object_of(line, object).ok()) return names;
  for (const auto field : object) names.emplace_back(field.key);
  return names;
}

void LineProblems::count(std::string_view problem, uint64_t lines) {
  total_ += lines;
  const auto known =
      std::find_if(counts_.begin(), counts_.end(), [&](const auto& entry) { return entry.first == problem; });
  if (known != counts_.end()) {
    known->second += lines;
  } else {
    counts_.emplace_back(problem, lines);
  }
}

void LineProblems::note(std::string_view file, uint64_t line, const LineVerdict& verdict) {
  assert(!verdict.ok());
  count(name_of(verdict.problem), 1);
  if (named_.size() >= kNamed) return;
  named_.push_back(std::string(file) + ':' + std::to_string(line) + ": " +
                   std::string(name_of(verdict.problem)) +
                   (verdict.detail.empty() ? "" : ": " + verdict.detail));
}

void LineProblems::note(std::string_view file, uint64_t line, std::string_view what) {
  count(what, 1);
  if (named_.size() < kNamed)
    named_.push_back(std::string(file) + ':' + std::to_string(line) + ": " + std::string(what));
}

void LineProblems::add(const LineProblems& later) {
  for (const auto& [problem, lines] : later.counts_) count(problem, lines);
  for (const std::string& name : later.named_)
    if (named_.size() < kNamed) named_.push_back(name);
}

}  // namespace lmemo
