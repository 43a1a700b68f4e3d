// Files that a stranger wrote: every one loads as HuggingFace reads it, or is refused with the place.

#include <doctest/doctest.h>

#include <string>

#include "lmemo/tokenizer.h"
#include "tokenizer/json_document.h"

namespace lmemo::tokenizer {
namespace {

std::string file_with(const std::string& model, const std::string& more = "") {
  return R"({"version": "1.0", "model": )" + model + more + "}";
}

const std::string kWords = R"({"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "a": 1, "b": 2}})";

std::string refusal_of(const std::string& json) {
  const auto tokenizer = Tokenizer::from_json(json);
  return tokenizer.ok() ? "loads" : tokenizer.error().describe();
}

std::vector<uint32_t> ids_of(const std::string& json, std::string_view text) {
  const auto tokenizer = Tokenizer::from_json(json);
  REQUIRE(tokenizer.ok());
  const auto ids = (*tokenizer)->encode(text);
  REQUIRE(ids.ok());
  return *ids;
}

std::string bpe(const std::string& vocab, const std::string& merges, const std::string& more = "") {
  return file_with(R"({"type": "BPE", "vocab": )" + vocab + R"(, "merges": )" + merges + more + "}");
}

}  // namespace

TEST_CASE("a refusal names the place and what was found there") {
  CHECK(refusal_of("").find("not JSON at byte") != std::string::npos);
  CHECK(refusal_of("[]") == "incompatible: tokenizer.json, top level: expected an object, found array");
  CHECK(refusal_of("{}") == "incompatible: tokenizer.json, top level: \"model\" is missing");
  CHECK(refusal_of(file_with(R"({"type": "Oracle"})")) ==
        "incompatible: tokenizer.json, model.type: model \"Oracle\" is not known");
  CHECK(refusal_of(file_with(R"({"type": "WordLevel", "unk_token": 3, "vocab": {}})")) ==
        "incompatible: tokenizer.json, model.unk_token: expected a string, found number");
  CHECK(refusal_of(file_with(kWords, R"(, "padding": {"strategy": "Sometimes"})")).find("padding.strategy") !=
        std::string::npos);
  CHECK(refusal_of(bpe(R"({"a": 0})", "[]", R"(, "dropout": 0.5)")).find("model.dropout") !=
        std::string::npos);
}

TEST_CASE("hostile files are refused") {
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  CHECK(refusal_of(file_with(kWords, R"(, "normalizer": )" + deep)).find("nested deeper") !=
        std::string::npos);
  CHECK(refusal_of("{\"a\": \"\xFF\"}").find("not JSON at byte") != std::string::npos);
  CHECK(refusal_of(bpe(R"({"a": 0, "a": 1})", "[]")).find("stands twice") != std::string::npos);
  CHECK(refusal_of(bpe(R"({"a": 0, "b": 0})", "[]")).find("of another token") != std::string::npos);
  for (const char* id : {"-1", "4294967296", "1e300", "1.5", "null", "\"0\"", "[]"})
    CHECK(refusal_of(bpe(std::string(R"({"a": )") + id + "}", "[]")).find("model.vocab") !=
          std::string::npos);
  CHECK(refusal_of(bpe(R"({"a": 0, "b": 1})", R"(["a b"])")).find("merges[0]: \"ab\" is not") !=
        std::string::npos);
  CHECK(refusal_of(bpe(R"({"a": 0})", R"(["a"])")).find("merges[0]") != std::string::npos);
  CHECK(refusal_of(bpe(R"({"a": 0})", R"([["a", "b", "c"]])")).find("merges[0]") != std::string::npos);
  CHECK(refusal_of(bpe(R"({"a": 0, "b": 1, "ab": 2})", R"(["a b", ["a", "b"]])")).find("merges[1]") !=
        std::string::npos);
  CHECK(refusal_of(file_with(R"({"type": "Unigram", "unk_id": 1, "vocab": [["a", 0.0]]})")).find("unk_id") !=
        std::string::npos);
  CHECK(
      refusal_of(file_with(kWords, R"(, "padding": {"strategy": {"Fixed": 99999999999}})")).find("padding") !=
      std::string::npos);
}

TEST_CASE("merges that lead back to where they began end nevertheless") {
  const std::string json = bpe(R"({"": 0, "a": 1, "aa": 2})", R"([["a", "a"], ["aa", ""], ["", "a"]])");
  CHECK(ids_of(json, "aaaa") == std::vector<uint32_t>{2, 2});
}

TEST_CASE("the order of keys does not change the identity, anything else does") {
  const auto identity = [](const std::string& json) {
    const auto tokenizer = Tokenizer::from_json(json);
    REQUIRE(tokenizer.ok());
    return (*tokenizer)->identity().hex();
  };
  const std::string one = bpe(R"({"a": 0, "b": 1, "ab": 2})", R"(["a b"])");
  CHECK(
      identity(one) ==
      identity(
          R"({"model": {"merges": ["a b"], "vocab": {"ab": 2, "b": 1, "a": 0}, "type": "BPE"}, "version": "1.0"})"));
  CHECK(identity(one) != identity(bpe(R"({"a": 1, "b": 0, "ab": 2})", R"(["a b"])")));
  CHECK(identity(one) != identity(bpe(R"({"a": 0, "b": 1, "ab": 2})", "[]")));
}

TEST_CASE("text that is not UTF-8 is refused with its place") {
  const auto tokenizer = Tokenizer::from_json(file_with(kWords));
  REQUIRE(tokenizer.ok());
  const auto ids = (*tokenizer)->encode("ab\xC3");
  REQUIRE_FALSE(ids.ok());
  CHECK(ids.error().describe() == "invalid_argument: text is not UTF-8 at byte 2");
  const std::string_view texts[] = {"a", "\xED\xA0\x80"};
  const auto batch = (*tokenizer)->encode_batch(texts, {}, 2);
  REQUIRE_FALSE(batch.ok());
  CHECK(batch.error().message.find("text 1: ") == 0);
}

TEST_CASE("a batch is one buffer with offsets, whatever the number of threads") {
  const auto tokenizer =
      Tokenizer::from_json(file_with(kWords, R"(, "pre_tokenizer": {"type": "WhitespaceSplit"})"));
  REQUIRE(tokenizer.ok());
  const std::vector<std::string_view> texts = {"a b", "", "b", "a a a"};
  for (const unsigned threads : {0u, 1u, 2u, 9u}) {
    const auto batch = (*tokenizer)->encode_batch(texts, {}, threads);
    REQUIRE(batch.ok());
    CHECK(batch->ids == std::vector<uint32_t>{1, 2, 2, 1, 1, 1});
    CHECK(batch->offsets == std::vector<uint64_t>{0, 2, 2, 3, 6});
    CHECK((*batch)[2].size() == 1);
  }
  CHECK((*tokenizer)->encode_batch({}).value().size() == 0);
}

TEST_CASE("numbers are read as serde_json reads them") {
  CHECK(serde_number("-2.5") == -2.5);
  CHECK(serde_number("1e2") == 100.0);
  CHECK(serde_number("0.1") == 0.1);
  CHECK(serde_number("12345678901234567890123") == 12345678901234567890.0 * 1e3);
  CHECK(serde_number("1e-400") == 0.0);
  CHECK(serde_number("0e999999999999") == 0.0);
  // One unit below the nearest value: the seventeen digits do not fit into a double before they are divided.
  CHECK(serde_number("-9.306408882141113") == -(9306408882141113.0 / 1e15));
}

}  // namespace lmemo::tokenizer
