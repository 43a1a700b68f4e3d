// Small tokenizers of every kind, as the text of their tokenizer.json: the patterns and parts of the real ones over
// vocabularies of a few hundred tokens, so that merges, unknown characters and added tokens all occur in short texts.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tokenizer/reference/byte_characters.h"
#include "tokenizer/reference/byte_tokens.h"

namespace lmemo::fuzz {

using Json = nlohmann::json;

inline constexpr std::string_view kSampleText =
    "the quick brown fox jumps over the lazy dog and then the other dogs ; it's what they'll have said : "
    "don't "
    "return 123 1234 if ( x == y ) { foo_bar ( ) ; } \n\n    def self . call ( the , that ) \t ... !!! --- "
    "\xC3\xA9t\xC3\xA9 na\xC3\xAFve \xE4\xB8\xAD\xE6\x96\x87\xE4\xB8\xAD\xE5\x9B\xBD "
    "\xE4\xB8\xAD\xE6\x96\x87 "
    "\xD0\xBF\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82 \xF0\x9F\x98\x80\xF0\x9F\x98\x80 The THE There ABC "
    "ABCD";

// Byte pair encoding as it is trained, over words that are lists of tokens.
inline std::pair<Json, Json> grown(std::vector<std::string> tokens,
                                   std::vector<std::vector<std::string>> words, size_t merge_count) {
  Json merges = Json::array();
  while (merges.size() < merge_count) {
    std::map<std::pair<std::string, std::string>, int> pairs;
    for (const auto& word : words)
      for (size_t i = 1; i < word.size(); ++i) ++pairs[{word[i - 1], word[i]}];
    if (pairs.empty()) break;
    auto best = pairs.begin();
    for (auto pair = pairs.begin(); pair != pairs.end(); ++pair)
      if (pair->second > best->second) best = pair;
    const auto [left, right] = best->first;
    merges.push_back({left, right});
    if (std::find(tokens.begin(), tokens.end(), left + right) == tokens.end()) tokens.push_back(left + right);
    for (auto& word : words)
      for (size_t i = 1; i < word.size(); ++i)
        if (word[i - 1] == left && word[i] == right) {
          word[i - 1] += right;
          word.erase(word.begin() + static_cast<std::ptrdiff_t>(i));
        }
  }
  Json vocabulary = Json::object();
  for (size_t id = 0; id < tokens.size(); ++id) vocabulary[tokens[id]] = id;
  return {vocabulary, merges};
}

inline std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> characters;
  for (const char byte : text) {
    if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) characters.emplace_back();
    characters.back() += byte;
  }
  return characters;
}

// Words keep the blank before them.
inline std::vector<std::string> sample_words() {
  std::vector<std::string> words(1);
  for (const char byte : kSampleText) {
    if (byte == ' ' && !words.back().empty() && words.back() != " ") words.emplace_back();
    words.back() += byte;
  }
  return words;
}

inline Json byte_level_model(bool ignore_merges) {
  std::vector<std::string> tokens;
  for (unsigned byte = 0; byte < 256; ++byte)
    tokens.push_back(tokenizer::bytes_as_characters(std::string(1, static_cast<char>(byte))));
  std::vector<std::vector<std::string>> words;
  for (const std::string& word : sample_words())
    words.push_back(characters_of(tokenizer::bytes_as_characters(word)));
  auto [vocabulary, merges] = grown(std::move(tokens), std::move(words), 220);
  if (ignore_merges)  // Tokens that no merge leads to.
    for (const char* token : {"Ġzebra", "xyzzy", "ĠĠĠĠĠ", "ðŁĺĤ"}) vocabulary[token] = vocabulary.size();
  return {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}, {"ignore_merges", ignore_merges}};
}

inline Json sentence_piece_model(bool byte_fallback) {
  std::vector<std::string> tokens = {"<unk>"};
  if (byte_fallback)
    for (unsigned byte = 0; byte < 256; ++byte)
      tokens.push_back(tokenizer::byte_token(static_cast<unsigned char>(byte)));
  std::vector<std::vector<std::string>> words;
  for (const std::string& word : sample_words()) {
    words.emplace_back();
    for (std::string& character : characters_of(word)) {
      if (character == " ") character = "\xE2\x96\x81";
      if (character == "\n") continue;
      if (std::find(tokens.begin(), tokens.end(), character) == tokens.end()) tokens.push_back(character);
      words.back().push_back(character);
    }
  }
  auto [vocabulary, merges] = grown(std::move(tokens), std::move(words), 220);
  return {{"type", "BPE"},
          {"vocab", vocabulary},
          {"merges", merges},
          {"unk_token", "<unk>"},
          {"byte_fallback", byte_fallback},
          {"fuse_unk", true}};
}

inline Json word_piece_model() {
  Json vocabulary = {{"[UNK]", 0}, {"[CLS]", 1}, {"[SEP]", 2}};
  const auto add = [&](const std::string& token) {
    if (!vocabulary.contains(token)) vocabulary[token] = vocabulary.size();
  };
  for (std::string word : sample_words()) {
    if (word.starts_with(' ')) word.erase(0, 1);
    const std::vector<std::string> characters = characters_of(word);
    std::string front, back;
    for (size_t i = 0; i < characters.size(); ++i) {
      add("##" + characters[i]);
      front += characters[i];
      if (i % 2 == 0) add(front);
      if (i > 0) back += characters[i];
    }
    if (!back.empty()) add("##" + back);
  }
  return {{"type", "WordPiece"},
          {"unk_token", "[UNK]"},
          {"continuing_subword_prefix", "##"},
          {"max_input_chars_per_word", 20},
          {"vocab", vocabulary}};
}

inline Json unigram_model() {
  Json vocabulary = Json::array({Json::array({"<unk>", 0.0})});
  double score = -1.25;
  const Json pieces = sentence_piece_model(false)["vocab"];
  for (const auto& [token, id] : pieces.items())
    if (token != "<unk>") vocabulary.push_back(Json::array({token, score -= 0.03125}));
  return {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}};
}

inline Json added_token(std::string_view content, bool special, std::string_view flag = "") {
  Json token = {{"id", 0},         {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", special}};
  if (!flag.empty()) token[std::string(flag)] = true;
  return token;
}

inline Json split_by(std::string_view regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}

inline std::vector<std::pair<std::string, std::string>> small_tokenizers() {
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  Json gpt2 = byte_level;
  gpt2["use_regex"] = true;
  Json gpt2_with_space = gpt2;
  gpt2_with_space["add_prefix_space"] = true;
  const Json individual_digits = {{"type", "Digits"}, {"individual_digits", true}};
  const Json digits = {{"type", "Digits"}, {"individual_digits", false}};
  const Json punctuation = {{"type", "Punctuation"}, {"behavior", "Contiguous"}};
  const Json metaspace = {
      {"type", "Metaspace"}, {"replacement", "\xE2\x96\x81"}, {"prepend_scheme", "always"}, {"split", true}};
  const auto unsplit_metaspace = [](const char* scheme) {
    return Json{
        {"type", "Metaspace"}, {"replacement", "\xE2\x96\x81"}, {"prepend_scheme", scheme}, {"split", false}};
  };
  const auto sequence = [](std::vector<Json> parts) {
    return Json{{"type", "Sequence"}, {"pretokenizers", parts}};
  };
  const auto split_bytes = [&](std::string_view regex) { return sequence({split_by(regex), byte_level}); };
  constexpr std::string_view kCl100k =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr std::string_view kQwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr std::string_view kQwen35 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr std::string_view kO200k =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr std::string_view kTekken =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr std::string_view kDeepseekWords = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^)"
                                              "\r\n"
                                              R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[)"
                                              "\r\n"
                                              R"(]*|\s*[)"
                                              "\r\n"
                                              R"(]+|\s+(?!\S)|\s+)";
  const Json deepseek =
      sequence({split_by(R"(\p{N}{1,3})"), split_by("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
                split_by(kDeepseekWords), byte_level});

  const Json specials = {added_token("<s>", true),
                         added_token("<|endoftext|>", true),
                         added_token("<pad>", true, "lstrip"),
                         added_token("<|im_end|>", true, "rstrip"),
                         added_token("word", false, "single_word"),
                         added_token("Th\xC3\xA9", false, "normalized")};
  const Json bos = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair",
       {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {300}}, {"tokens", {"<s>"}}}}}}};
  const Json bert = {{"type", "BertNormalizer"},
                     {"clean_text", true},
                     {"handle_chinese_chars", true},
                     {"strip_accents", nullptr},
                     {"lowercase", true}};
  const Json prepend = {
      {"type", "Sequence"},
      {"normalizers",
       {{{"type", "Prepend"}, {"prepend", "\xE2\x96\x81"}},
        {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\xE2\x96\x81"}}}}};
  const Json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\xE2\x96\x81"}};
  const Json merged = {{"type", "Split"},
                       {"pattern", {{"String", " "}}},
                       {"behavior", "MergedWithPrevious"},
                       {"invert", false}};
  const Json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  const Json none = nullptr, nfc = {{"type", "NFC"}}, nfkc = {{"type", "NFKC"}},
             lower = {{"type", "Lowercase"}};

  struct Row {
    const char* name;
    Json normalizer, pre_tokenizer, model, post_processor, decoder;
  };
  const std::vector<Row> rows = {
      {"gpt2", none, gpt2, byte_level_model(false), none, bytes},
      {"gpt2 with prefix space", none, gpt2_with_space, byte_level_model(false), none, bytes},
      {"gpt2 nfkc", nfkc, gpt2, byte_level_model(false), none, bytes},
      {"gpt2 lowercase", lower, gpt2, byte_level_model(false), bos, bytes},
      {"cl100k", none, split_bytes(kCl100k), byte_level_model(false), none, bytes},
      {"llama3", none, split_bytes(kCl100k), byte_level_model(true), bos, bytes},
      {"qwen2", nfc, split_bytes(kQwen2), byte_level_model(false), none, bytes},
      {"qwen3.5", nfc, split_bytes(kQwen35), byte_level_model(false), none, bytes},
      {"o200k", none, split_bytes(kO200k), byte_level_model(false), none, bytes},
      {"tekken", none, split_bytes(kTekken), byte_level_model(true), bos, bytes},
      {"deepseek", none, deepseek, byte_level_model(false), none, bytes},
      {"starcoder", none, sequence({individual_digits, gpt2}), byte_level_model(false), none, bytes},
      {"falcon", none, sequence({punctuation, gpt2, digits, split_by("[0-9][0-9][0-9]")}),
       byte_level_model(false), none, bytes},
      {"another split", none, split_bytes(R"(\p{L}+|\d|[^\p{L}\d]+)"), byte_level_model(false), none, bytes},
      {"no split", none, byte_level, byte_level_model(false), none, bytes},
      {"llama2", prepend, none, sentence_piece_model(true), none, none},
      {"gemma", replace, merged, sentence_piece_model(true), none, none},
      {"llama2 by metaspace", none, unsplit_metaspace("first"), sentence_piece_model(true), none, none},
      {"llama2 by metaspace, always", none, unsplit_metaspace("always"), sentence_piece_model(true), none,
       none},
      {"llama2 in words", none, metaspace, sentence_piece_model(true), none, none},
      {"sentence piece with unk", none, metaspace, sentence_piece_model(false), none, none},
      {"bert",
       bert,
       {{"type", "BertPreTokenizer"}},
       word_piece_model(),
       none,
       {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
      {"unigram", nfkc, sequence({{{"type", "WhitespaceSplit"}}, metaspace}), unigram_model(), none,
       metaspace},
  };
  std::vector<std::pair<std::string, std::string>> made;
  for (const Row& row : rows) {
    const Json file = {{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", specials},
                       {"normalizer", row.normalizer},
                       {"pre_tokenizer", row.pre_tokenizer},
                       {"post_processor", row.post_processor},
                       {"decoder", row.decoder},
                       {"model", row.model}};
    made.emplace_back(row.name, file.dump());
  }
  return made;
}

}  // namespace lmemo::fuzz
