// Pre-tokenizers that cut by the class of each character: Bert, Whitespace, Punctuation, Digits, scripts, fixed length.
#include "tokenizer/reference/pre_tokenizer_cutter.h"
#include "tokenizer/reference/split_rules.h"
#include "tokenizer/unicode/properties.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace lmemo::tokenizer {
namespace {

// Cuts at every character that has the flag.
class FlagSplit : public Cutter {
 public:
  FlagSplit(CharacterFlag flag, SplitBehavior behavior) : flag_(flag), behavior_(behavior) {}

 protected:
  std::vector<Match> cuts(std::u32string_view text) const override {
    const auto found = characters_where(text, [&](char32_t c) { return has_flag(c, flag_); });
    return cuts_of(found, text.size(), false, behavior_);
  }

 private:
  const CharacterFlag flag_;
  const SplitBehavior behavior_;
};

class BertPreTokenizer : public PreTokenizer {
 public:
  void split(std::vector<Piece>& pieces) const override {
    spaces_.split(pieces);
    punctuation_.split(pieces);
  }

 private:
  const FlagSplit spaces_{kSpace, SplitBehavior::removed};
  const FlagSplit punctuation_{kPunctuation, SplitBehavior::isolated};
};

// Keeps the runs whose characters have equal keys and drops those without one.
template <typename KeyOf>
std::vector<Match> runs_by(std::u32string_view text, KeyOf key_of) {
  std::vector<Match> runs;
  std::optional<bool> last;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::optional<bool> key = key_of(text[at]);
    if (key && key == last) {
      runs.back().end = at + 1;
    } else if (key) {
      runs.push_back({at, at + 1});
    }
    last = key;
  }
  return runs;
}

// \w+|[^\w\s]+
class Whitespace : public Cutter {
 protected:
  std::vector<Match> cuts(std::u32string_view text) const override {
    return runs_by(text, [](char32_t c) {
      return has_flag(c, kWordSpace) ? std::nullopt : std::optional<bool>(has_flag(c, kWord));
    });
  }
};

// Cuts where the script changes. A character without one (0) continues the script before it; in front of the first
// script HuggingFace loses such characters, and so do we.
class UnicodeScripts : public Cutter {
 protected:
  std::vector<Match> cuts(std::u32string_view text) const override {
    std::vector<Match> found;
    uint8_t last = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      const uint8_t script = properties_of(text[at]).script;
      if (script != 0 && script != last) {
        if (!found.empty()) found.back().end = at;
        found.push_back({at, text.size()});
        last = script;
      }
    }
    return found;
  }
};

class FixedLength : public Cutter {
 public:
  explicit FixedLength(size_t length) : length_(length) {}

 protected:
  std::vector<Match> cuts(std::u32string_view text) const override {
    std::vector<Match> found;
    for (size_t at = 0; at < text.size(); at += length_)
      found.push_back({at, std::min(at + length_, text.size())});
    return found;
  }

 private:
  const size_t length_;
};

template <typename Made, typename... Arguments>
MadePreTokenizer made(Arguments... arguments) {
  return std::unique_ptr<PreTokenizer>(std::make_unique<Made>(arguments...));
}

}  // namespace

MadePreTokenizer make_bert_pre_tokenizer(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<BertPreTokenizer>();
}
MadePreTokenizer make_whitespace(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<Whitespace>();
}
MadePreTokenizer make_unicode_scripts(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<UnicodeScripts>();
}

MadePreTokenizer make_whitespace_split(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type"}));
  return made<FlagSplit>(kSpace, SplitBehavior::removed);
}

MadePreTokenizer make_punctuation(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "behavior"}));
  const auto isolated = static_cast<size_t>(SplitBehavior::isolated);
  LMEMO_ASSIGN(const size_t behavior, fields.word_or("behavior", kSplitBehaviors, isolated));
  return made<FlagSplit>(kPunctuation, static_cast<SplitBehavior>(behavior));
}

MadePreTokenizer make_digits(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "individual_digits"}));
  LMEMO_ASSIGN(const bool is_individual, fields.flag("individual_digits"));
  const SplitBehavior behavior = is_individual ? SplitBehavior::isolated : SplitBehavior::contiguous;
  return made<FlagSplit>(kNumeric, behavior);
}

MadePreTokenizer make_fixed_length(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "length"}));
  LMEMO_ASSIGN(const size_t length, fields.number_or("length", 5, std::numeric_limits<size_t>::max()));
  if (length == 0) return refusal(fields.where("length"), "expected more than 0");
  return made<FixedLength>(length);
}

}  // namespace lmemo::tokenizer
