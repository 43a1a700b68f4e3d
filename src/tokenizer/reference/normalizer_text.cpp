// The normalizers that rewrite characters: normal forms, case, blanks, accents, replacements, BERT.
#include "tokenizer/reference/byte_characters.h"
#include "tokenizer/reference/normalizer_makers.h"
#include "tokenizer/reference/pre_tokenizer_cutter.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/unicode/mappings.h"
#include "tokenizer/unicode/properties.h"

#include <utility>
#include <vector>

namespace lmemo::tokenizer {
namespace {

bool begins_with(std::string_view utf8, CharacterFlag flag) {
  return !utf8.empty() && has_flag(code_points_of(utf8.substr(0, utf8_length(utf8)))[0], flag);
}

class UnicodeForm : public Normalizer {
 public:
  UnicodeForm(bool is_compatible, bool is_composed)
      : is_compatible_(is_compatible), is_composed_(is_composed) {}

  std::string normalize(std::string_view utf8) const override {
    const std::u32string text = decomposed(code_points_of(utf8), is_compatible_);
    return utf8_of(is_composed_ ? composed(text) : text);
  }

 private:
  const bool is_compatible_, is_composed_;
};

class Lowercase : public Normalizer {
 public:
  std::string normalize(std::string_view utf8) const override {
    return utf8_of(lowercased(code_points_of(utf8)));
  }
};

class Strip : public Normalizer {
 public:
  Strip(bool strips_left, bool strips_right) : strips_left_(strips_left), strips_right_(strips_right) {}

  std::string normalize(std::string_view utf8) const override {
    const std::u32string text = code_points_of(utf8);
    size_t begin = 0, end = text.size();
    if (strips_left_)
      while (begin < end && has_flag(text[begin], kSpace)) ++begin;
    if (strips_right_)
      while (end > begin && has_flag(text[end - 1], kSpace)) --end;
    return utf8_of(std::u32string_view(text).substr(begin, end - begin));
  }
  bool drops_start(std::string_view utf8) const override { return strips_left_ && begins_with(utf8, kSpace); }

 private:
  const bool strips_left_, strips_right_;
};

class StripAccents : public Normalizer {
 public:
  std::string normalize(std::string_view utf8) const override {
    std::u32string text = code_points_of(utf8);
    std::erase_if(text, [](char32_t c) { return has_flag(c, kAccent); });
    return utf8_of(text);
  }
  bool drops_start(std::string_view utf8) const override { return begins_with(utf8, kAccent); }
};

class Nmt : public Normalizer {
 public:
  std::string normalize(std::string_view utf8) const override {
    std::u32string text = code_points_of(utf8);
    std::erase_if(text, [](char32_t c) { return has_flag(c, kNmtRemoved); });
    for (char32_t& c : text)
      if (has_flag(c, kNmtBlank)) c = U' ';
    return utf8_of(text);
  }
  bool drops_start(std::string_view utf8) const override { return begins_with(utf8, kNmtRemoved); }
};

class Replace : public Normalizer {
 public:
  Replace(Regex pattern, std::string_view content)
      : pattern_(std::move(pattern)), content_(code_points_of(content)) {}

  std::string normalize(std::string_view utf8) const override {
    const std::u32string text = code_points_of(utf8);
    std::u32string out;
    size_t end = 0;
    for (const Match& match : pattern_.find_all(text)) {
      out.append(text, end, match.begin - end);
      out += content_;
      end = match.end;
    }
    out.append(text, end);
    return utf8_of(out);
  }
  bool drops_start(std::string_view utf8) const override {
    if (utf8.empty()) return false;
    // HuggingFace lets the content stand where the last replaced character stood.
    const size_t kept = content_.empty() ? 0 : 1;
    const std::vector<Match> matches = pattern_.find_all(code_points_of(utf8));
    return !matches.empty() && matches[0].begin == 0 && matches[0].end > kept;
  }

 private:
  const Regex pattern_;
  const std::u32string content_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}

  std::string normalize(std::string_view utf8) const override {
    return utf8.empty() ? "" : prefix_ + std::string(utf8);
  }

 private:
  const std::string prefix_;
};

class ByteLevelNormalizer : public Normalizer {
 public:
  std::string normalize(std::string_view utf8) const override { return bytes_as_characters(utf8); }
};

struct BertOptions {
  bool cleans_text, sets_chinese_apart, strips_accents, lowers_case;
};

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(BertOptions options) : options_(options) {}

  std::string normalize(std::string_view utf8) const override { return normalized(utf8).first; }
  bool drops_start(std::string_view utf8) const override { return normalized(utf8).second; }

 private:
  // And whether its start was dropped.
  std::pair<std::string, bool> normalized(std::string_view utf8) const {
    std::u32string text = code_points_of(utf8);
    bool drops = false;
    const auto drop = [&](CharacterFlag flag) {
      drops = drops || (!text.empty() && has_flag(text[0], flag));
      std::erase_if(text, [&](char32_t c) { return has_flag(c, flag); });
    };
    if (options_.cleans_text) {
      drop(kBertRemoved);
      for (char32_t& c : text)
        if (has_flag(c, kBertBlank)) c = U' ';
    }
    if (options_.sets_chinese_apart) text = with_chinese_apart(text);
    if (options_.strips_accents) {
      text = decomposed(text, false);
      drop(kBertAccent);
    }
    if (options_.lowers_case) text = lowercased(text);
    return {utf8_of(text), drops};
  }

  static std::u32string with_chinese_apart(std::u32string_view text) {
    std::u32string out;
    for (const char32_t c : text) {
      if (has_flag(c, kBertChinese)) {
        out += {U' ', c, U' '};
      } else {
        out += c;
      }
    }
    return out;
  }

  const BertOptions options_;
};

template <typename Made, typename... Arguments>
MadeNormalizer made(Arguments&&... arguments) {
  return std::unique_ptr<Normalizer>(std::make_unique<Made>(std::forward<Arguments>(arguments)...));
}

}  // namespace

std::u32string lowercased(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    const std::u32string_view lower = lowercase_of(c);
    if (lower.empty()) {
      out += c;
    } else {
      out += lower;
    }
  }
  return out;
}

MadeNormalizer make_nfc(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<UnicodeForm>(false, true);
}
MadeNormalizer make_nfd(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<UnicodeForm>(false, false);
}
MadeNormalizer make_nfkc(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<UnicodeForm>(true, true);
}
MadeNormalizer make_nfkd(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<UnicodeForm>(true, false);
}
MadeNormalizer make_lowercase(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<Lowercase>();
}
MadeNormalizer make_strip_accents(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<StripAccents>();
}
MadeNormalizer make_nmt(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<Nmt>();
}
MadeNormalizer make_byte_level_normalizer(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<ByteLevelNormalizer>();
}

MadeNormalizer make_strip(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "strip_left", "strip_right"}));
  LMEMO_ASSIGN(const bool strips_left, fields.flag("strip_left"));
  LMEMO_ASSIGN(const bool strips_right, fields.flag("strip_right"));
  return made<Strip>(strips_left, strips_right);
}

MadeNormalizer make_replace(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "pattern", "content"}));
  LMEMO_ASSIGN(Regex pattern, pattern_of(fields));
  LMEMO_ASSIGN(const std::string content, fields.text("content"));
  // HuggingFace loses count of characters that are put in at the start of a text: the next step may panic or double
  // what stands there.
  if (pattern.may_be_empty() && !content.empty())
    return refusal(fields.where("pattern"),
                   "may match nothing; expected one that takes a character, or no content");
  return made<Replace>(std::move(pattern), content);
}

MadeNormalizer make_prepend(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "prepend"}));
  LMEMO_ASSIGN(std::string prefix, fields.text("prepend"));
  // As with Replace.
  if (prefix.empty()) return refusal(fields.where("prepend"), "expected a text, found an empty one");
  return made<Prepend>(std::move(prefix));
}

MadeNormalizer make_bert_normalizer(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "clean_text", "handle_chinese_chars", "lowercase", "strip_accents"}));
  BertOptions options{};
  LMEMO_ASSIGN(options.cleans_text, fields.flag("clean_text"));
  LMEMO_ASSIGN(options.sets_chinese_apart, fields.flag("handle_chinese_chars"));
  LMEMO_ASSIGN(options.lowers_case, fields.flag("lowercase"));
  LMEMO_ASSIGN(options.strips_accents, fields.flag_or("strip_accents", options.lowers_case));
  return made<BertNormalizer>(options);
}

}  // namespace lmemo::tokenizer
