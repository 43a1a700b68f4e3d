// Pre-tokenizers that cut at a pattern: ByteLevel, Split, Metaspace, CharDelimiterSplit.
#include "tokenizer/reference/byte_characters.h"
#include "tokenizer/reference/byte_level_options.h"
#include "tokenizer/reference/pre_tokenizer_cutter.h"
#include "tokenizer/reference/split_rules.h"
#include "tokenizer/reference/utf8_chars.h"
#include "tokenizer/unicode/code_points.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace lmemo::tokenizer {
namespace {

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class ByteLevel : public Cutter {
 public:
  ByteLevel(bool adds_space, std::optional<Regex> regex)
      : adds_space_(adds_space), regex_(std::move(regex)) {}

 protected:
  void rewrite(std::u32string& text, bool) const override {
    if (adds_space_ && !text.empty() && text[0] != U' ') text.insert(text.begin(), U' ');
  }
  std::vector<Match> cuts(std::u32string_view text) const override {
    if (!regex_) return {{0, text.size()}};
    return cuts_of(regex_->find_all(text), text.size(), false, SplitBehavior::isolated);
  }
  std::string finished(std::u32string_view cut) const override { return bytes_as_characters(utf8_of(cut)); }

 private:
  const bool adds_space_;
  const std::optional<Regex> regex_;
};

class Split : public Cutter {
 public:
  Split(Regex regex, SplitBehavior behavior, bool is_inverted)
      : regex_(std::move(regex)), behavior_(behavior), is_inverted_(is_inverted) {}

 protected:
  std::vector<Match> cuts(std::u32string_view text) const override {
    return cuts_of(regex_.find_all(text), text.size(), is_inverted_, behavior_);
  }

 private:
  const Regex regex_;
  const SplitBehavior behavior_;
  const bool is_inverted_;
};

// In the order of kPrependSchemes.
enum class PrependScheme : uint8_t { always, first, never };
const std::vector<std::string_view> kPrependSchemes = {"always", "first", "never"};

class Metaspace : public Cutter {
 public:
  Metaspace(char32_t replacement, PrependScheme scheme, bool splits)
      : replacement_(replacement), scheme_(scheme), splits_(splits) {}

 protected:
  void rewrite(std::u32string& text, bool starts_text) const override {
    for (char32_t& c : text)
      if (c == U' ') c = replacement_;
    const bool prepends =
        scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && starts_text);
    if (prepends && !text.empty() && text[0] != replacement_) text.insert(text.begin(), replacement_);
  }
  std::vector<Match> cuts(std::u32string_view text) const override {
    if (!splits_) return {{0, text.size()}};
    const auto found = characters_where(text, [&](char32_t c) { return c == replacement_; });
    return cuts_of(found, text.size(), false, SplitBehavior::merged_with_next);
  }

 private:
  const char32_t replacement_;
  const PrependScheme scheme_;
  const bool splits_;
};

class CharDelimiterSplit : public Cutter {
 public:
  explicit CharDelimiterSplit(char32_t delimiter) : delimiter_(delimiter) {}

 protected:
  std::vector<Match> cuts(std::u32string_view text) const override {
    const auto found = characters_where(text, [&](char32_t c) { return c == delimiter_; });
    return cuts_of(found, text.size(), false, SplitBehavior::removed);
  }

 private:
  const char32_t delimiter_;
};

}  // namespace

Result<Regex> pattern_of(const Fields& fields) {
  const nlohmann::json* pattern = fields.find("pattern");
  if (pattern == nullptr || !pattern->is_object() || pattern->size() != 1)
    return refusal(fields.where("pattern"), R"(expected {"String": …} or {"Regex": …})");
  LMEMO_ASSIGN(const Fields kinds, Fields::of(*pattern, fields.where("pattern")));
  if (kinds.find("String") != nullptr) {
    LMEMO_ASSIGN(const std::string text, kinds.text("String"));
    return Regex::literal(text);
  }
  LMEMO_ASSIGN(const std::string text, kinds.text("Regex"));
  Result<Regex> regex = Regex::compile(text);
  if (!regex) return refusal(kinds.where(), regex.error().message);
  return regex;
}

MadePreTokenizer make_byte_level(const Fields& fields) {
  LMEMO_ASSIGN(const ByteLevelOptions options, byte_level_options_in(fields));
  std::optional<Regex> regex;
  if (options.uses_regex) {
    LMEMO_ASSIGN(regex, Regex::compile(kGpt2Pattern));
  }
  return std::unique_ptr<PreTokenizer>(std::make_unique<ByteLevel>(options.adds_space, std::move(regex)));
}

MadePreTokenizer make_split(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "pattern", "behavior", "invert"}));
  LMEMO_ASSIGN(Regex regex, pattern_of(fields));
  LMEMO_ASSIGN(const size_t behavior, fields.word("behavior", kSplitBehaviors));
  LMEMO_ASSIGN(const bool is_inverted, fields.flag("invert"));
  return std::unique_ptr<PreTokenizer>(
      std::make_unique<Split>(std::move(regex), static_cast<SplitBehavior>(behavior), is_inverted));
}

MadePreTokenizer make_metaspace(const Fields& fields) {
  LMEMO_TRY(
      fields.expect_only({"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"}));
  LMEMO_ASSIGN(const std::string replacement, fields.character("replacement"));
  LMEMO_ASSIGN(const size_t scheme, fields.word_or("prepend_scheme", kPrependSchemes, 0));
  LMEMO_ASSIGN(const bool splits, fields.flag_or("split", true));
  LMEMO_ASSIGN(const bool adds_space,
               fields.flag_or("add_prefix_space", true));  // The older name of the scheme.
  const auto found_scheme = static_cast<PrependScheme>(scheme);
  if (!adds_space && found_scheme != PrependScheme::never)
    return refusal(fields.where("add_prefix_space"), "false does not agree with prepend_scheme");
  return std::unique_ptr<PreTokenizer>(
      std::make_unique<Metaspace>(char_at(replacement, 0), found_scheme, splits));
}

MadePreTokenizer make_char_delimiter_split(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "delimiter"}));
  LMEMO_ASSIGN(const std::string delimiter, fields.character("delimiter"));
  return std::unique_ptr<PreTokenizer>(std::make_unique<CharDelimiterSplit>(char_at(delimiter, 0)));
}

}  // namespace lmemo::tokenizer
