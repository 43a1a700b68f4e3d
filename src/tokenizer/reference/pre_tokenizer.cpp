#include "tokenizer/reference/pre_tokenizer.h"

#include "tokenizer/reference/pre_tokenizer_cutter.h"
#include "tokenizer/unicode/code_points.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace lmemo::tokenizer {
namespace {

constexpr int kMaxDepth = 20;

class PreTokenizerSequence : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> parts)
      : parts_(std::move(parts)) {}

  void split(std::vector<Piece>& pieces) const override {
    for (const auto& part : parts_) part->split(pieces);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

constexpr std::pair<std::string_view, MadePreTokenizer (*)(const Fields&)> kMakers[] = {
    {"ByteLevel", make_byte_level},
    {"Split", make_split},
    {"Metaspace", make_metaspace},
    {"CharDelimiterSplit", make_char_delimiter_split},
    {"BertPreTokenizer", make_bert_pre_tokenizer},
    {"Whitespace", make_whitespace},
    {"WhitespaceSplit", make_whitespace_split},
    {"Punctuation", make_punctuation},
    {"Digits", make_digits},
    {"UnicodeScripts", make_unicode_scripts},
    {"FixedLength", make_fixed_length},
};

// Whether a Metaspace with "first" follows a part that inserts characters: HuggingFace may then see several starts of
// the text, which `starts_text` cannot say. No real tokenizer does that.
bool sees_inserted_start(const nlohmann::json& parts, bool& has_inserted) {
  for (const nlohmann::json& part : parts) {
    const std::string type = part.is_object() ? part.value("type", nlohmann::json()).dump() : "";
    if (type == "\"Sequence\"" && part.contains("pretokenizers"))
      if (sees_inserted_start(part["pretokenizers"], has_inserted)) return true;
    if (type == "\"Metaspace\"" && has_inserted && part.value("prepend_scheme", nlohmann::json()) == "first")
      return true;
    has_inserted = has_inserted || type == "\"Metaspace\"" || type == "\"ByteLevel\"";
  }
  return false;
}

MadePreTokenizer make(const nlohmann::json& json, const std::string& where, int depth);

MadePreTokenizer make_sequence(const Fields& fields, int depth) {
  LMEMO_TRY(fields.expect_only({"type", "pretokenizers"}));
  LMEMO_ASSIGN(const nlohmann::json* list, fields.list("pretokenizers"));
  bool has_inserted = false;
  if (depth == 0 && sees_inserted_start(*list, has_inserted))
    return refusal(fields.where(),
                   "a Metaspace with \"first\" behind a part that inserts characters is not supported");
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  for (size_t at = 0; at < list->size(); ++at) {
    const std::string where = fields.where("pretokenizers") + "[" + std::to_string(at) + "]";
    LMEMO_ASSIGN(std::unique_ptr<PreTokenizer> part, make((*list)[at], where, depth + 1));
    parts.push_back(std::move(part));
  }
  return std::unique_ptr<PreTokenizer>(std::make_unique<PreTokenizerSequence>(std::move(parts)));
}

MadePreTokenizer make(const nlohmann::json& json, const std::string& where, int depth) {
  if (depth > kMaxDepth) return refusal(where, "nested too deeply");
  LMEMO_ASSIGN(const Fields fields, Fields::of(json, where));
  LMEMO_ASSIGN(const std::string type, fields.text("type"));
  if (type == "Sequence") return make_sequence(fields, depth);
  for (const auto& [name, maker] : kMakers)
    if (type == name) return maker(fields);
  return refusal(where + ".type", "pre-tokenizer " + shown(type) + " is not known");
}

}  // namespace

void Cutter::split(std::vector<Piece>& pieces) const {
  std::vector<Piece> cut_pieces;
  for (const Piece& piece : pieces) {
    std::u32string text = code_points_of(piece.text);
    rewrite(text, piece.starts_text);
    for (const Match& cut : cuts(text)) {
      if (cut.begin == cut.end) continue;
      const std::u32string_view cut_text = std::u32string_view(text).substr(cut.begin, cut.end - cut.begin);
      cut_pieces.push_back({finished(cut_text), piece.starts_text && cut.begin == 0});
    }
  }
  pieces = std::move(cut_pieces);
}

std::string Cutter::finished(std::u32string_view cut) const { return utf8_of(cut); }

Result<std::unique_ptr<PreTokenizer>> make_pre_tokenizer(const nlohmann::json& json,
                                                         const std::string& where) {
  if (json.is_null()) return std::unique_ptr<PreTokenizer>();
  return make(json, where, 0);
}

}  // namespace lmemo::tokenizer
