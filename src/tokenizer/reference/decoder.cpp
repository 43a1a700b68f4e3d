// "decoder" of a tokenizer.json: which one, with which options.

#include "tokenizer/reference/decoder.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "tokenizer/json_fields.h"
#include "tokenizer/reference/byte_level_options.h"
#include "tokenizer/reference/decoder_steps.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;
using Made = Result<std::unique_ptr<Decoder>>;

template <typename Step, typename... Arguments>
std::unique_ptr<Decoder> made(Arguments&&... arguments) {
  return std::unique_ptr<Decoder>(new Step(std::forward<Arguments>(arguments)...));
}

Made make_metaspace(const Fields& fields) {
  LMEMO_TRY(
      fields.expect_only({"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"}));
  LMEMO_ASSIGN(std::string replacement, fields.character("replacement"));
  LMEMO_ASSIGN(const bool adds_prefix, fields.flag_or("add_prefix_space", true));
  LMEMO_TRY(fields.expect_no_null({"prepend_scheme"}));
  LMEMO_ASSIGN(const std::optional<std::string> scheme, fields.optional_text("prepend_scheme"));
  const std::string word = scheme.value_or("always");
  if (word != "always" && word != "first" && word != "never")
    return refusal(fields.where("prepend_scheme"), shown(word) + " is not known");
  if (!adds_prefix && word != "never")
    return refusal(fields.where("add_prefix_space"),
                   "false does not agree with prepend_scheme " + shown(word));
  return made<MetaspaceDecoder>(std::move(replacement), word != "never");
}

Made make_replace(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "pattern", "content"}));
  LMEMO_ASSIGN(const Json* json, fields.get("pattern"));
  LMEMO_ASSIGN(const Fields pattern, Fields::of(*json, fields.where("pattern")));
  if (const Json* regex = pattern.find("Regex"))
    return refusal(pattern.where("Regex"),
                   "decoder Replace with the regex " + regex->dump() + " is not implemented");
  LMEMO_TRY(pattern.expect_only({"String"}));
  LMEMO_ASSIGN(std::string text, pattern.text("String"));
  LMEMO_ASSIGN(std::string content, fields.text("content"));
  if (text.empty()) return refusal(pattern.where("String"), "expected a text, found an empty one");
  return made<ReplaceDecoder>(std::move(text), std::move(content));
}

Made make_ctc(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "pad_token", "word_delimiter_token", "cleanup"}));
  LMEMO_ASSIGN(std::string pad_token, fields.text("pad_token"));
  LMEMO_ASSIGN(std::string delimiter, fields.text("word_delimiter_token"));
  LMEMO_ASSIGN(const bool cleans_up, fields.flag("cleanup"));
  return made<CtcDecoder>(std::move(pad_token), std::move(delimiter), cleans_up);
}

Made make_strip(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "content", "start", "stop"}));
  LMEMO_ASSIGN(std::string content, fields.character("content"));
  LMEMO_ASSIGN(const uint64_t start, fields.number("start", std::numeric_limits<uint32_t>::max()));
  LMEMO_ASSIGN(const uint64_t stop, fields.number("stop", std::numeric_limits<uint32_t>::max()));
  return made<StripDecoder>(std::move(content), start, stop);
}

Made make_sequence(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "decoders"}));
  LMEMO_ASSIGN(const Json* list, fields.list("decoders"));
  std::vector<std::unique_ptr<Decoder>> steps;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string where = fields.where("decoders") + "[" + std::to_string(i) + "]";
    LMEMO_ASSIGN(auto step, make_decoder((*list)[i], where));
    if (!step) return refusal(where, "expected an object, found null");
    steps.push_back(std::move(step));
  }
  return made<SequenceDecoder>(std::move(steps));
}

}  // namespace

Made make_decoder(const Json& json, const std::string& where) {
  if (json.is_null()) return std::unique_ptr<Decoder>();
  LMEMO_ASSIGN(const Fields fields, Fields::of(json, where));
  LMEMO_ASSIGN(const std::string type, fields.text("type"));
  if (type == "ByteLevel") {
    LMEMO_TRY(byte_level_options_in(fields));
    return made<ByteLevelDecoder>();
  }
  if (type == "WordPiece") {
    LMEMO_TRY(fields.expect_only({"type", "prefix", "cleanup"}));
    LMEMO_ASSIGN(std::string prefix, fields.text("prefix"));
    LMEMO_ASSIGN(const bool cleans_up, fields.flag("cleanup"));
    return made<WordPieceDecoder>(std::move(prefix), cleans_up);
  }
  if (type == "BPEDecoder") {
    LMEMO_TRY(fields.expect_only({"type", "suffix"}));
    LMEMO_ASSIGN(std::string suffix, fields.text("suffix"));
    return made<BpeDecoder>(std::move(suffix));
  }
  if (type == "Metaspace") return make_metaspace(fields);
  if (type == "ByteFallback") return made<ByteFallbackDecoder>();
  if (type == "Fuse") return made<FuseDecoder>();
  if (type == "Strip") return make_strip(fields);
  if (type == "Replace") return make_replace(fields);
  if (type == "CTC") return make_ctc(fields);
  if (type == "Sequence") return make_sequence(fields);
  return refusal(where + ".type", "decoder " + shown(type) + " is not known");
}

}  // namespace lmemo::tokenizer
