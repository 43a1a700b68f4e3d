#include "tokenizer/reference/added_tokens.h"

#include <algorithm>
#include <limits>

#include "tokenizer/json_fields.h"
#include "tokenizer/reference/utf8_chars.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

// The words and spaces of Rust's regex crate.
bool is_word(uint32_t character) { return has_flag(character, kWord); }
bool is_space(uint32_t character) { return has_flag(character, kWordSpace); }

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word(char_at(text, text.size() - char_bytes_before(text, text.size())));
}

bool starts_with_word(std::string_view text) { return !text.empty() && is_word(char_at(text, 0)); }

// Where the white space at the end of the text begins.
size_t start_of_last_space(std::string_view text) {
  size_t start = text.size();
  while (start > 0) {
    const size_t byte_count = char_bytes_before(text, start);
    if (!is_space(char_at(text, start - byte_count))) break;
    start -= byte_count;
  }
  return start;
}

size_t end_of_first_space(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is_space(char_at(text, end))) end += char_bytes(text, end);
  return end;
}

}  // namespace

bool AddedTokens::Matcher::add(std::string pattern, uint32_t id) {
  return ids_.try_emplace(std::move(pattern), id).second;
}

void AddedTokens::Matcher::finish() {
  std::vector<std::pair<std::string_view, uint32_t>> patterns(ids_.begin(), ids_.end());
  std::sort(patterns.begin(), patterns.end());
  is_first_byte_.assign(256, false);
  for (auto& [pattern, value] : patterns) {
    found_ids_.push_back(value);
    value = static_cast<uint32_t>(found_ids_.size() - 1);
    const auto first = static_cast<unsigned char>(pattern.front());
    if (!is_first_byte_[first]) first_bytes_.push_back(pattern.front());
    is_first_byte_[first] = true;
  }
  trie_ = DoubleArrayTrie(patterns);
}

AddedTokens::Matcher::Walk::Walk(const Matcher& matcher, std::string_view text)
    : matcher_(matcher), text_(text) {
  if (matcher.first_bytes_.size() <= kMaxBytesToFind)
    for (size_t i = 0; i < matcher.first_bytes_.size(); ++i)
      next_of_byte_[i] = text.find(matcher.first_bytes_[i]);
}

std::optional<size_t> AddedTokens::Matcher::Walk::next_candidate() {
  if (matcher_.first_bytes_.size() > kMaxBytesToFind) {
    while (at_ < text_.size() && !matcher_.is_first_byte_[static_cast<unsigned char>(text_[at_])]) ++at_;
    return at_ < text_.size() ? std::optional(at_) : std::nullopt;
  }
  size_t nearest = std::string_view::npos;
  for (size_t i = 0; i < matcher_.first_bytes_.size(); ++i) {
    if (next_of_byte_[i] < at_) next_of_byte_[i] = text_.find(matcher_.first_bytes_[i], at_);
    nearest = std::min(nearest, next_of_byte_[i]);
  }
  return nearest == std::string_view::npos ? std::nullopt : std::optional(nearest);
}

std::optional<AddedTokens::Matcher::Found> AddedTokens::Matcher::Walk::next() {
  while (const std::optional<size_t> start = next_candidate()) {
    size_t byte_count = 0;
    uint32_t found = 0;
    matcher_.trie_.each_prefix(text_.data() + *start, text_.data() + text_.size(),
                               [&](size_t bytes, uint32_t value) {
                                 byte_count = bytes;
                                 found = value;
                               });
    at_ = *start + std::max<size_t>(byte_count, 1);
    if (byte_count > 0) return Found{*start, at_, matcher_.found_ids_[found]};
  }
  return std::nullopt;
}

Result<AddedTokens> AddedTokens::make(const std::vector<AddedToken>& tokens, const Model& model,
                                      const Normalizer* normalizer, const std::string& where) {
  AddedTokens added;
  uint64_t next_id = model.vocab_size();
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    if (token.is_special) added.special_.try_emplace(token.content, true);
    std::optional<uint32_t> id = token.fixed_id;
    if (!id) id = added.id_of(token.content);
    if (!id) id = model.id_of(token.content);
    if (!id) {
      if (next_id > std::numeric_limits<uint32_t>::max()) return refusal(where, "no id is free");
      id = static_cast<uint32_t>(next_id++);  // Also if the model's ids have gaps, and this is one of them.
    }
    if (token.is_normalized && normalizer) {
      std::string form = normalizer->normalize(token.content);
      if (form != token.content) added.normal_forms_.insert_or_assign(*id, std::move(form));
    }
    added.ids_.insert_or_assign(token.content, *id);
    added.tokens_.insert_or_assign(*id, token);
  }

  for (const auto& [id, token] : added.tokens_) {
    if (!token.is_normalized) {
      added.raw_.add(token.content, id);
      continue;
    }
    const std::string pattern(*added.token_of(id));
    if (pattern.empty())
      return refusal(where,
                     shown(token.content) + " is nothing once normalized, and would be found everywhere");
    if (!added.normalized_.add(pattern, id))
      return refusal(where, shown(token.content) +
                                " and another token are the same once normalized, and "
                                "HuggingFace chooses between them at random");
  }
  added.raw_.finish();
  added.normalized_.finish();
  return added;
}

std::optional<uint32_t> AddedTokens::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string_view> AddedTokens::token_of(uint32_t id) const {
  if (const auto form = normal_forms_.find(id); form != normal_forms_.end()) return form->second;
  const auto found = tokens_.find(id);
  if (found == tokens_.end()) return std::nullopt;
  return found->second.content;
}

bool AddedTokens::stay_within_lines() const {
  return std::all_of(tokens_.begin(), tokens_.end(), [](const auto& entry) {
    const std::string& content = entry.second.content;
    const size_t newline = std::min(content.find('\n'), content.size());
    return !entry.second.strips_left && !entry.second.strips_right &&
           content.find_first_not_of('\n', newline) == std::string::npos;
  });
}

bool AddedTokens::have_newlines() const {
  return std::any_of(tokens_.begin(), tokens_.end(),
                     [](const auto& entry) { return entry.second.content.find('\n') != std::string::npos; });
}

Result<std::vector<Segment>> AddedTokens::split(std::string_view text, const Matcher& matcher) const {
  std::vector<Segment> segments;
  size_t covered = 0;
  Matcher::Walk walk(matcher, text);
  while (const std::optional<Matcher::Found> match = walk.next()) {
    size_t start = match->start, end = match->end;
    const AddedToken& token = tokens_.at(match->id);
    if (token.is_single_word && (ends_with_word(text.substr(0, start)) || starts_with_word(text.substr(end))))
      continue;
    if (token.strips_left) start = std::max(start_of_last_space(text.substr(0, start)), covered);
    if (token.strips_right) end += end_of_first_space(text.substr(end));
    if (start > end)  // White space as a token behind one that took it along. HuggingFace panics.
      return Error{ErrorCode::invalid_argument, "the added token " + shown(token.content) + " at byte " +
                                                    std::to_string(end) + " was taken by the one before"};
    if (covered < start) segments.push_back({covered, start, std::nullopt});
    segments.push_back({start, end, match->id});
    covered = end;
  }
  if (covered != text.size()) segments.push_back({covered, text.size(), std::nullopt});
  return segments;
}

}  // namespace lmemo::tokenizer
