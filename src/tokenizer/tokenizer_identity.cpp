// The identity of a tokenizer.json: SHA-256 over its canonical text, which is written piece by piece.
//
// The text is what nlohmann's dump() gives for the whole document. Changing one byte of it changes every identity:
// count up the rules then.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/sha256.h"
#include "tokenizer/tokenizer_document.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;

class CanonicalText {
 public:
  explicit CanonicalText(Sha256& hash) : hash_(hash) { buffer_.reserve(kBlockBytes + 4096); }
  ~CanonicalText() { flush(); }

  void add(std::string_view json) {
    buffer_.append(json);
    if (buffer_.size() >= kBlockBytes) flush();
  }

  void add_whole(int64_t number) {
    std::array<char, 24> digits;
    add({digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr});
  }

  void add_real(double number) {
    std::array<char, 64> digits;
    add({digits.data(), nlohmann::detail::to_chars(digits.data(), digits.data() + digits.size(), number)});
  }

  void add_text(std::string_view text) {
    buffer_ += '"';
    add_escaped(text);
    add("\"");
  }

  void add_escaped(std::string_view text) {
    static constexpr std::string_view kDigits = "0123456789abcdef", kNames = "btn?fr";
    size_t done = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      const auto byte = static_cast<unsigned char>(text[at]);
      if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
      buffer_.append(text, done, at - done);
      done = at + 1;
      buffer_ += '\\';
      if (byte >= 0x20) {
        buffer_ += text[at];
      } else if (byte >= '\b' && byte <= '\r' && byte != '\v') {
        buffer_ += kNames[byte - '\b'];
      } else {
        buffer_.append("u00").append({kDigits[byte >> 4], kDigits[byte & 15]});
      }
    }
    buffer_.append(text, done);
  }

 private:
  static constexpr size_t kBlockBytes = 65536;

  void flush() {
    hash_.update(bytes_of(buffer_));
    buffer_.clear();
  }

  Sha256& hash_;
  std::string buffer_;
};

// For sorting: the first eight bytes as a number decide most comparisons.
struct SortedToken {
  uint64_t front;
  std::string_view token;
  uint32_t id;

  bool operator<(const SortedToken& other) const {
    return front != other.front ? front < other.front : token < other.token;
  }
};

uint64_t front_of(std::string_view token) {
  std::array<unsigned char, 8> bytes{};
  std::memcpy(bytes.data(), token.data(), std::min<size_t>(token.size(), 8));
  uint64_t front = 0;
  for (const unsigned char byte : bytes) front = front << 8 | byte;
  return front;
}

// A copy of a vocabulary: the document's own goes into a model, and with it if that turns out to be wrong.
struct SortedTokens {
  explicit SortedTokens(const std::optional<Vocabulary>& vocabulary) {
    if (!vocabulary) return;
    size_t bytes = 0;
    vocabulary->for_each([&](std::string_view token, uint32_t) { bytes += token.size(); });
    text.reserve(bytes);
    all.reserve(vocabulary->size());
    vocabulary->for_each([&](std::string_view token, uint32_t id) {
      const char* const copy = text.data() + text.size();
      text.append(token);
      all.push_back({front_of(token), {copy, token.size()}, id});
    });
  }
  SortedTokens(const SortedTokens&) = delete;

  std::string text;
  std::vector<SortedToken> all;  // Sorted when they are written.
};

void add_vocabulary(CanonicalText& text, SortedTokens& tokens) {
  std::sort(tokens.all.begin(), tokens.all.end());
  std::string_view between = "{";
  for (const SortedToken& token : tokens.all) {
    text.add(between);
    text.add_text(token.token);
    text.add(":");
    text.add_whole(token.id);
    between = ",";
  }
  text.add(tokens.all.empty() ? "{}" : "}");
}

void add_scored(CanonicalText& text, const std::vector<ScoredToken>& scored) {
  std::string_view between = "[[";
  for (const ScoredToken& token : scored) {
    text.add(between);
    text.add_text(token.token);
    text.add(",");
    if (token.is_whole) {
      text.add_whole(static_cast<int64_t>(token.score));
    } else {
      text.add_real(token.score);
    }
    between = "],[";
  }
  text.add(scored.empty() ? "[]" : "]]");
}

void add_merges(CanonicalText& text, const std::vector<MergeText>& merges, bool are_pairs) {
  std::string_view between = "[";
  for (const MergeText& merge : merges) {
    text.add(between);
    text.add(are_pairs ? "[\"" : "\"");
    text.add_escaped(merge.left);
    if (!merge.is_comment()) text.add(are_pairs ? "\",\"" : " ");
    text.add_escaped(merge.right);
    text.add(are_pairs ? "\"]" : "\"");
    between = ",";
  }
  text.add(merges.empty() ? "[]" : "]");
}

void add_tree(CanonicalText& text, const Json& tree, SortedTokens& tokens, const ModelTables* tables,
              bool is_model) {
  if (!tree.is_object() || !tables) return text.add(tree.dump());
  std::string_view between = "{";
  for (const auto& [key, value] : tree.get_ref<const Json::object_t&>()) {
    text.add(between);
    text.add_text(key);
    text.add(":");
    between = ",";
    if (is_model && key == "vocab" && tables->vocabulary) {
      add_vocabulary(text, tokens);
    } else if (is_model && key == "vocab" && tables->scored) {
      add_scored(text, *tables->scored);
    } else if (is_model && key == "merges" && tables->merges) {
      add_merges(text, *tables->merges, tables->merges_are_pairs);
    } else {
      const bool has_tables = !is_model && key == "model";
      add_tree(text, value, tokens, has_tables ? tables : nullptr, has_tables);
    }
  }
  text.add(tree.empty() ? "{}" : "}");
}

}  // namespace

std::future<Digest> TokenizerDocument::identity(std::string_view rules) const {
  auto work = [this, rules, tokens = std::make_unique<SortedTokens>(tables.vocabulary)] {
    Sha256 hash;
    hash.update(bytes_of(rules));
    {
      CanonicalText text(hash);
      add_tree(text, tree, *tokens, &tables, false);
    }
    return hash.finish();
  };
  // A machine that has no thread left does it when it is asked for, and so is a small one done.
  constexpr size_t kManyTokens = 4096;
  const bool is_large = (tables.vocabulary && tables.vocabulary->size() >= kManyTokens) ||
                        (tables.scored && tables.scored->size() >= kManyTokens);
  return std::async(is_large ? std::launch::async | std::launch::deferred : std::launch::deferred,
                    std::move(work));
}

}  // namespace lmemo::tokenizer
