#include "sources/json_lines.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "sources/padded_line.h"
#include "support/test_scale.h"

using namespace lmemo;
using test::PaddedLine;

namespace {

struct TextAnswer {
  LineProblem problem;
  std::string text;
  bool operator==(const TextAnswer&) const = default;
};

std::ostream& operator<<(std::ostream& out, const TextAnswer& answer) {
  return out << name_of(answer.problem) << " '" << answer.text << "'";
}

TextAnswer text_in(std::string_view line, std::string_view field = "text") {
  JsonLineParser parser;
  const PaddedLine padded(line);
  std::string_view text;
  const LineVerdict verdict = parser.text(padded, *FieldPath::parse(field), text);
  return {verdict.problem, verdict.ok() ? std::string(text) : ""};
}

TextAnswer fine(std::string text) { return {LineProblem::none, std::move(text)}; }
TextAnswer wrong(LineProblem problem) { return {problem, ""}; }

}  // namespace

TEST_CASE("the text of a line is what Python's json would read") {
  CHECK(text_in(R"({"text": "hello"})") == fine("hello"));
  CHECK(text_in(R"(  {"a": 1, "text": "h\u00e9\n\"\\\/"}  )"
                "\r") == fine("hé\n\"\\/"));
  CHECK(text_in(R"({"text": "\ud83d\ude00"})") == fine("😀"));
  CHECK(text_in(R"({"text": "a\u0000b"})") == fine(std::string("a\0b", 3)));
  CHECK(text_in(R"({"text": ""})") == fine(""));
  CHECK(text_in(R"({"t\u0065xt": "by escape"})") == fine("by escape"));
}

TEST_CASE("of several equal keys the last counts") {
  CHECK(text_in(R"({"text": "first", "text": "last"})") == fine("last"));
  CHECK(text_in(R"({"text": "first", "text": 7})") == wrong(LineProblem::wrong_type));
}

TEST_CASE("numbers that no 64 bits hold, NaN and Infinity harm no other field") {
  CHECK(text_in(R"({"n": 123456789012345678901234567890, "text": "a"})") == fine("a"));
  CHECK(text_in(R"({"n": [NaN, Infinity,-Infinity], "text": "NaN \" 1e999"})") == fine("NaN \" 1e999"));
  CHECK(text_in(R"({"n": 1e999, "text": "a"})") == fine("a"));
  CHECK(text_in(R"({"n": 012, "text": "a"})") == wrong(LineProblem::broken_json));
  CHECK(text_in(R"({"n": NaNa, "text": "a"})") == wrong(LineProblem::broken_json));
  CHECK(text_in(R"({"n": -, "text": "a"})") == wrong(LineProblem::broken_json));
}

TEST_CASE("a field may be named by a path, and a whole name comes first") {
  CHECK(text_in(R"({"a": {"b": {"c": "deep"}}})", "a.b.c") == fine("deep"));
  CHECK(text_in(R"({"a.b": "flat", "a": {"b": "deep"}})", "a.b") == fine("flat"));
  CHECK(text_in(R"({"a": {"x": "b"}})", "a.b") == wrong(LineProblem::missing_field));
  CHECK(text_in(R"({"a": "b"})", "a.b") == wrong(LineProblem::missing_field));
  CHECK_FALSE(FieldPath::parse("").ok());
  CHECK_FALSE(FieldPath::parse("a..b").ok());
  CHECK_FALSE(FieldPath::parse("a.").ok());
}

TEST_CASE("what is wrong with a line is said") {
  CHECK(text_in(R"({"text": "a)") == wrong(LineProblem::broken_json));
  CHECK(text_in(R"({"text": "a"} x)") == wrong(LineProblem::broken_json));
  CHECK(text_in("{\"text\": \"a\tb\"}") == wrong(LineProblem::broken_json));
  CHECK(text_in(std::string("{\"text\": \"a\0b\"}", 14)) == wrong(LineProblem::broken_json));
  CHECK(text_in("{\"text\": \"\xff\"}") == wrong(LineProblem::invalid_utf8));
  CHECK(text_in("{\"text\": \"\xed\xa0\x80\"}") == wrong(LineProblem::invalid_utf8));
  CHECK(text_in(R"(["text"])") == wrong(LineProblem::not_an_object));
  CHECK(text_in(R"("text")") == wrong(LineProblem::not_an_object));
  CHECK(text_in("null") == wrong(LineProblem::not_an_object));
  CHECK(text_in(R"({"body": "a"})") == wrong(LineProblem::missing_field));
  CHECK(text_in(R"({"text": null})") == wrong(LineProblem::wrong_type));
  CHECK(text_in(R"({"text": ["a"]})") == wrong(LineProblem::wrong_type));
  CHECK(text_in("") == wrong(LineProblem::broken_json));
}

TEST_CASE("half of a surrogate pair is a problem of its own") {
  CHECK(text_in(R"({"text": "\ud800"})") == wrong(LineProblem::lone_surrogate));
  CHECK(text_in(R"({"text": "\udc00"})") == wrong(LineProblem::lone_surrogate));
  CHECK(text_in(R"({"text": "a\uD83Dx"})") == wrong(LineProblem::lone_surrogate));
  CHECK(text_in(R"({"text": "\ude00\ud83d"})") == wrong(LineProblem::lone_surrogate));
  CHECK(text_in(R"({"text": "\\ud800"})") == fine("\\ud800"));
  CHECK(text_in("{\"text\": \"\xed\x9f\xbf\"}") == fine("\xed\x9f\xbf"));
}

TEST_CASE("messages are roles and contents") {
  JsonLineParser parser;
  std::vector<ChatMessage> messages;
  const FieldPath path = *FieldPath::parse("messages");
  const PaddedLine good(R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
                            {"type": "text", "text": "b"}]}, {"content": "yes", "role": "assistant", "name": "x"},
                            {"role": "user", "content": [{"text": "c", "type": "text"}]}]})");
  REQUIRE(parser.messages(good, path, messages).ok());
  REQUIRE(messages.size() == 3);
  CHECK(messages[0].content == "ab");
  CHECK(messages[1].role == "assistant");
  CHECK(messages[1].content == "yes");
  CHECK(messages[2].content == "c");

  const auto problem_of = [&](std::string_view line) {
    const PaddedLine padded(line);
    return parser.messages(padded, path, messages).problem;
  };
  CHECK(problem_of(R"({"messages": []})") == LineProblem::none);
  CHECK(problem_of(R"({"messages": {}})") == LineProblem::wrong_type);
  CHECK(problem_of(R"({"messages": ["hi"]})") == LineProblem::wrong_type);
  CHECK(problem_of(R"({"messages": [{"content": "hi"}]})") == LineProblem::wrong_role);
  CHECK(problem_of(R"({"messages": [{"role": 1, "content": "hi"}]})") == LineProblem::wrong_role);
  CHECK(problem_of(R"({"messages": [{"role": "user"}]})") == LineProblem::missing_field);
  CHECK(problem_of(R"({"messages": [{"role": "user", "content": null}]})") == LineProblem::wrong_type);
  CHECK(problem_of(R"({"messages": [{"role": "user", "content": [{"type": "image"}]}]})") ==
        LineProblem::wrong_type);
  CHECK(problem_of(R"({"chat": []})") == LineProblem::missing_field);
}

TEST_CASE("messages as JSON keep everything, in one spelling") {
  JsonLineParser parser;
  std::string json;
  const FieldPath path = *FieldPath::parse("messages");
  const PaddedLine line(
      R"({"x": 1, "messages": [ {"role":"user", "content" : "\u0041", "n": 1.5} ], "tools": [ ]})");
  REQUIRE(parser.messages_json(line, path, "tools", json).ok());
  CHECK(json == R"({"messages":[{"role":"user","content":"A","n":1.5}],"tools":[]})");
  const PaddedLine broken(R"({"messages": [{"role":"user", "content":"\ud800"}]})");
  CHECK(parser.messages_json(broken, path, "", json).problem == LineProblem::lone_surrogate);
}

TEST_CASE("problems are counted, and the first ones named") {
  LineProblems first, second;
  for (uint64_t line = 1; line <= 12; ++line) first.note("a.jsonl", line, {LineProblem::broken_json, "why"});
  second.note("b.jsonl", 3, "empty text");
  second.note("b.jsonl", 4, {LineProblem::broken_json, ""});
  LineProblems all;
  all.add(second);
  all.add(first);
  CHECK(all.total() == 14);
  CHECK(all.named().size() == LineProblems::kNamed);
  CHECK(all.named()[0] == "b.jsonl:3: empty text");
  CHECK(all.named()[2] == "a.jsonl:1: broken JSON: why");
  CHECK(all.counts() ==
        std::vector<std::pair<std::string, uint64_t>>{{"empty text", 1}, {"broken JSON", 13}});
}

TEST_CASE("a line cut or flipped anywhere is a verdict, and a good one has good text") {
  const std::string line =
      R"({"messages": [{"role": "user", "content": "h\u00e9 \ud83d\ude00"}], "text": "naïve \"x\"", "n": -1.5e3})";
  JsonLineParser parser;
  std::vector<ChatMessage> messages;
  std::string json;
  const FieldPath text_path = *FieldPath::parse("text");
  const FieldPath messages_path = *FieldPath::parse("messages");
  const auto look = [&](const std::string& bytes) {
    const PaddedLine padded(bytes);
    std::string_view text;
    if (parser.text(padded, text_path, text).ok()) CHECK(text.size() <= bytes.size());
    if (parser.messages(padded, messages_path, messages).ok())
      for (const ChatMessage& message : messages) CHECK(message.content.size() <= bytes.size());
    parser.messages_json(padded, messages_path, "n", json);
  };
  for (size_t cut = 0; cut < line.size(); ++cut) {
    look(line.substr(0, cut));
    CHECK_FALSE(text_in(line.substr(0, cut)).problem == LineProblem::none);
  }
  for (size_t at = 0; at < line.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = line;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      look(flipped);
    }
}
