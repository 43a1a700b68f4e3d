// Pre-tokenizers that cut by the class of each character: Bert, Whitespace, Punctuation, Digits, scripts, fixed length.
#include "tokenizer/reference/pre_tokenizer_cutter.h"
#include "tokenizer/reference/split_rules.h"
#include "tokenizer/unicode/properties.h"

#include <algorithm>
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
MadePreTokenizer without_more_options(PartOptions& fields, Arguments... arguments) {
  LMEMO_TRY(fields.refuse_others());
  return std::unique_ptr<PreTokenizer>(std::make_unique<Made>(arguments...));
}

}  // namespace

MadePreTokenizer make_bert_pre_tokenizer(PartOptions& fields) {
  return without_more_options<BertPreTokenizer>(fields);
}
MadePreTokenizer make_whitespace(PartOptions& fields) { return without_more_options<Whitespace>(fields); }
MadePreTokenizer make_unicode_scripts(PartOptions& fields) {
  return without_more_options<UnicodeScripts>(fields);
}

MadePreTokenizer make_whitespace_split(PartOptions& fields) {
  return without_more_options<FlagSplit>(fields, kSpace, SplitBehavior::removed);
}

MadePreTokenizer make_punctuation(PartOptions& fields) {
  const auto isolated = static_cast<size_t>(SplitBehavior::isolated);
  LMEMO_ASSIGN(const size_t behavior, fields.word("behavior", kSplitBehaviors, isolated));
  return without_more_options<FlagSplit>(fields, kPunctuation, static_cast<SplitBehavior>(behavior));
}

MadePreTokenizer make_digits(PartOptions& fields) {
  LMEMO_ASSIGN(const bool is_individual, fields.boolean("individual_digits"));
  const SplitBehavior behavior = is_individual ? SplitBehavior::isolated : SplitBehavior::contiguous;
  return without_more_options<FlagSplit>(fields, kNumeric, behavior);
}

MadePreTokenizer make_fixed_length(PartOptions& fields) {
  LMEMO_ASSIGN(const size_t length, fields.count("length", 5));
  if (length == 0) return fields.refuse("'length' is 0");
  return without_more_options<FixedLength>(fields, length);
}

}  // namespace lmemo::tokenizer
