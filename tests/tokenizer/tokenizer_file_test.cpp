// Files that a stranger wrote: every one loads as HuggingFace reads it, or is refused with the place.

#include <doctest/doctest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "lmemo/tokenizer.h"
#include "tokenizer/reference/bpe.h"
#include "tokenizer/reference/loader.h"
#include "tokenizer/tokenizer_document.h"

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
  CHECK(refusal_of(bpe(R"({"a": 4294967295, "b": 4294967295})", "[]")).find("of another token") !=
        std::string::npos);
  CHECK(refusal_of(bpe("{\"\xC3\": 0}", "[]")).find("not UTF-8") != std::string::npos);
  CHECK(refusal_of(bpe(R"({"a": 0})", R"(["a b" "c"])")).find("not JSON at byte") != std::string::npos);
  CHECK(refusal_of(bpe(R"({"a": 0})", "7")) ==
        "incompatible: tokenizer.json, model.merges: expected an array, found number");
  CHECK(refusal_of(bpe(R"([["a", 0]])", "[]")) ==
        "incompatible: tokenizer.json, model.vocab: expected an object, found array");
  CHECK(refusal_of(file_with(R"({"type": "Unigram", "vocab": [["a", 0.0], ["b"]]})")) ==
        "incompatible: tokenizer.json, model.vocab[1]: expected [\"token\", score]");
  CHECK(refusal_of(file_with(R"({"type": "Unigram", "vocab": [["a", 9007199254740993]]})"))
            .find("out of range") != std::string::npos);
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
    CHECK(batch->ids == TokenIds{1, 2, 2, 1, 1, 1});
    CHECK(batch->offsets == std::vector<uint64_t>{0, 2, 2, 3, 6});
    CHECK((*batch)[2].size() == 1);
  }
  CHECK((*tokenizer)->encode_batch({}).value().size() == 0);
}

TEST_CASE("the identity is the digest of the rules and of what another library writes with sorted keys") {
  for (const std::string& json :
       {bpe(R"({"b": 1, "a": 0, "ab\u0001\n\"\\": 7, "\u00e9\ud83d\ude00": 4294967295})", R"(["a b"])",
            R"(, "x": [1.5, -3, {}])"),
        bpe("{}", "[]"), bpe(R"({"a": 0})", R"([["a\t", "b"], ["", ""]])"),
        bpe(R"({"a": 0})", R"(["#version: 0.2 x y", "a b"])"),
        file_with(
            R"({"vocab": [["a", -1.25], ["b", 3], ["c", -0.1e-7], ["\u0000", 1e22]], "type": "Unigram"})"),
        file_with(R"({"vocab": [], "merges": {"b": [], "a": null}})"), file_with(R"({"vocab": "none"})"),
        file_with("{}"), file_with(R"([{"vocab": {"b": "x", "a": []}}])"), std::string("[]"),
        std::string(R"({"vocab": {"b": "x", "a": []}})")}) {
    CAPTURE(json);
    const auto document = TokenizerDocument::read(json);
    REQUIRE(document.ok());
    const std::string expected = "rules" + nlohmann::json::parse(json).dump();
    CHECK(document->identity("rules").get() == sha256(bytes_of(expected)));
  }
}

TEST_CASE("a large file that turns out to be wrong is refused while its identity is still being made") {
  nlohmann::json vocab;
  for (int i = 0; i < 20'000; ++i) vocab["token" + std::to_string(i)] = i;
  for (int round = 0; round < 5; ++round)
    CHECK(refusal_of(bpe(vocab.dump(), R"(["token1 token2"])")).find("is not in the vocabulary") !=
          std::string::npos);
  const std::string sound = bpe(vocab.dump(), "[]");
  const auto tokenizer = Tokenizer::from_json(sound);
  REQUIRE(tokenizer.ok());
  CHECK((*tokenizer)->identity() ==
        (*Tokenizer::from_json(nlohmann::json::parse(sound).dump(2)))->identity());
}

TEST_CASE("merges are in order of rank; of a pair that stands twice the last one is in force") {
  const auto file = load_file(
      bpe(R"({"a": 5, "b": 1, "c": 2, "ab": 3, "bc": 4})", R"(["#version: 0.2", "a b", "b c", "a b"])"));
  REQUIRE(file.ok());
  const auto* model = dynamic_cast<const Bpe*>(file->parts.model.get());
  REQUIRE(model);
  const auto merges = model->merges();
  REQUIRE(merges.size() == 2);
  CHECK((merges[0].left == 1 && merges[0].right == 2 && merges[0].id == 4 && merges[0].rank == 1));
  CHECK((merges[1].left == 5 && merges[1].right == 1 && merges[1].id == 3 && merges[1].rank == 2));
  std::vector<uint32_t> ids;
  REQUIRE(model->tokenize("abc", ids).ok());
  CHECK(ids == std::vector<uint32_t>{5, 4});
  CHECK(model->vocabulary().size() == 5);
}

}  // namespace lmemo::tokenizer
