// Runs normalizers and pre-tokenizers for tests: one JSON object a line in, one JSON value a line out.
//
//   {"normalizer": {…}}                       "ok" or {"refused": "…"}; used from now on
//   {"pre_tokenizer": {…}}                    likewise
//   {"normalize": "text"}                     the normalised text
//   {"split": "text", "starts_text": true}    its pieces, after pre-tokenizing only
//   {"quick_regex": "…"}                      "ok", or {"refused": …} if only the reference can do it; used from now on
//   {"quick_split": "text"}                   its pieces, by make_regex_splitter
//   {"encode": "text"}                        its pieces, normalised and pre-tokenized
//   {"property": [from, to]}                  of these code points: [category, class, grapheme, regex script, script, flags]
#include "tokenizer/fast/regex_splitter.h"
#include "tokenizer/reference/normalizer.h"
#include "tokenizer/reference/pre_tokenizer.h"
#include "tokenizer/unicode/properties.h"

#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

namespace lmemo::tokenizer {
namespace {

using nlohmann::json;

template <typename Part>
json made(std::unique_ptr<Part>& part, Result<std::unique_ptr<Part>> result) {
  if (!result) return {{"refused", result.error().message}};
  part = std::move(*result);
  return "ok";
}

json properties_between(uint32_t first, uint32_t last) {
  json all = json::array();
  for (uint32_t c = first; c < last; ++c) {
    const CharacterProperties& of = properties_of(c);
    all.push_back({of.category, of.combining_class, of.grapheme, of.regex_script, of.script, of.flags});
  }
  return all;
}

class Probe {
 public:
  json answer(const json& question) {
    if (question.contains("normalizer"))
      return made(normalizer_, make_normalizer(question["normalizer"], "normalizer"));
    if (question.contains("pre_tokenizer"))
      return made(pre_tokenizer_, make_pre_tokenizer(question["pre_tokenizer"], "pre_tokenizer"));
    if (question.contains("quick_regex")) {
      splitter_ = make_regex_splitter(question["quick_regex"].get<std::string>(), nullptr);
      return splitter_ ? json("ok") : json({{"refused", "not by make_regex_splitter"}});
    }
    if (question.contains("quick_split")) return quick_pieces(question["quick_split"].get<std::string>());
    if (question.contains("normalize")) {
      const auto text = question["normalize"].get<std::string>();
      return normalizer_ ? normalizer_->normalize(text) : text;
    }
    if (question.contains("property"))
      return properties_between(question["property"][0], question["property"][1]);
    std::vector<Piece> pieces = {first_piece(question)};
    if (pre_tokenizer_) pre_tokenizer_->split(pieces);
    json texts = json::array();
    for (const Piece& piece : pieces) texts.push_back(piece.text);
    return texts;
  }

 private:
  json quick_pieces(const std::string& text) const {
    json found = json::array();
    PieceSpan spans[PieceSplitter::kMinCapacity];
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at < end;) {
      const char* const base = at;
      const size_t count = splitter_->split(base, end, spans, PieceSplitter::kMinCapacity, at);
      for (size_t i = 0; i < count; ++i)
        found.push_back(std::string(base + spans[i].begin, base + spans[i].end));
    }
    return found;
  }

  Piece first_piece(const json& question) const {
    if (question.contains("split"))
      return {question["split"].get<std::string>(), question.value("starts_text", true)};
    const auto text = question.at("encode").get<std::string>();
    if (!normalizer_) return {text, true};
    return {normalizer_->normalize(text), !normalizer_->drops_start(text)};
  }

  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<PieceSplitter> splitter_;
};

}  // namespace
}  // namespace lmemo::tokenizer

int main() {
  std::ios::sync_with_stdio(false);
  lmemo::tokenizer::Probe probe;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << probe.answer(nlohmann::json::parse(line)).dump() << "\n";
}
