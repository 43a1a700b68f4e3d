#include "tokenizer/reference/normalizer.h"

#include "tokenizer/reference/normalizer_makers.h"

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace lmemo::tokenizer {
namespace {

constexpr int kMaxDepth = 20;

class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}

  std::string normalize(std::string_view utf8) const override {
    std::string text(utf8);
    for (const auto& part : parts_) text = part->normalize(text);
    return text;
  }

  bool drops_start(std::string_view utf8) const override {
    std::string text(utf8);
    for (const auto& part : parts_) {
      if (part->drops_start(text)) return true;
      text = part->normalize(text);
    }
    return false;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

constexpr std::pair<std::string_view, MadeNormalizer (*)(const Fields&)> kMakers[] = {
    {"NFC", make_nfc},
    {"NFD", make_nfd},
    {"NFKC", make_nfkc},
    {"NFKD", make_nfkd},
    {"Lowercase", make_lowercase},
    {"Strip", make_strip},
    {"StripAccents", make_strip_accents},
    {"Nmt", make_nmt},
    {"Replace", make_replace},
    {"Prepend", make_prepend},
    {"ByteLevel", make_byte_level_normalizer},
    {"BertNormalizer", make_bert_normalizer},
    {"Precompiled", make_precompiled},
};

MadeNormalizer make(const nlohmann::json& json, const std::string& where, int depth);

MadeNormalizer make_sequence(const Fields& fields, int depth) {
  LMEMO_TRY(fields.expect_only({"type", "normalizers"}));
  LMEMO_ASSIGN(const nlohmann::json* list, fields.list("normalizers"));
  std::vector<std::unique_ptr<Normalizer>> parts;
  for (size_t at = 0; at < list->size(); ++at) {
    const std::string where = fields.where("normalizers") + "[" + std::to_string(at) + "]";
    LMEMO_ASSIGN(std::unique_ptr<Normalizer> part, make((*list)[at], where, depth + 1));
    parts.push_back(std::move(part));
  }
  return std::unique_ptr<Normalizer>(std::make_unique<NormalizerSequence>(std::move(parts)));
}

MadeNormalizer make(const nlohmann::json& json, const std::string& where, int depth) {
  if (depth > kMaxDepth) return refusal(where, "nested too deeply");
  LMEMO_ASSIGN(const Fields fields, Fields::of(json, where));
  LMEMO_ASSIGN(const std::string type, fields.text("type"));
  if (type == "Sequence") return make_sequence(fields, depth);
  for (const auto& [name, maker] : kMakers)
    if (type == name) return maker(fields);
  return refusal(where + ".type", "normalizer " + shown(type) + " is not known");
}

}  // namespace

Result<std::unique_ptr<Normalizer>> make_normalizer(const nlohmann::json& json, const std::string& where) {
  if (json.is_null()) return std::unique_ptr<Normalizer>();
  return make(json, where, 0);
}

}  // namespace lmemo::tokenizer
