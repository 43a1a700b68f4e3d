#include "tokenizer/reference/decoder_steps.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// GPT-2 shows the printable bytes as themselves and the others, in order, as the characters from U+0100.
std::optional<unsigned char> byte_shown_as(uint32_t character) {
  static const std::array<int, 0x200> bytes = [] {
    std::array<int, 0x200> table;
    table.fill(-1);
    size_t next = 0x100;
    for (size_t byte = 0; byte < 256; ++byte) {
      const bool is_itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      table[is_itself ? byte : next++] = static_cast<int>(byte);
    }
    return table;
  }();
  if (character >= bytes.size() || bytes[character] < 0) return std::nullopt;
  return static_cast<unsigned char>(bytes[character]);
}

// As Rust's String::from_utf8_lossy: one U+FFFD for each longest beginning of a character.
std::string lossy_utf8(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    if (const size_t length = utf8_length(bytes.substr(at))) {
      text += bytes.substr(at, length);
      at += length;
      continue;
    }
    text += kReplacement;
    // A beginning is something that one, two or three more bytes would complete.
    size_t length = 1;
    for (size_t longer = 2; longer <= 3 && at + longer <= bytes.size(); ++longer) {
      bool can_be_completed = false;
      for (const char tail : {'\x80', '\xBF'}) {
        std::string whole(bytes.substr(at, longer));
        for (size_t more = 1; more <= 2; ++more)
          can_be_completed |= utf8_length(whole += tail) == whole.size();
      }
      if (!can_be_completed) break;
      length = longer;
    }
    at += length;
  }
  return text;
}

bool is_utf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = utf8_length(bytes.substr(at));
    if (length == 0) return false;
    at += length;
  }
  return true;
}

// Rust reads two hex digits, or a plus sign and one.
std::optional<char> byte_named(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

std::string cleaned_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [pattern, content] : kRules) text = replace_all(text, pattern, content);
  return text;
}

}  // namespace

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string result;
  if (pattern.empty()) {
    for (size_t at = 0; at < text.size();) {
      const size_t length = char_bytes(text, at);
      result.append(content).append(text.substr(at, length));
      at += length;
    }
    return result.append(content);
  }
  size_t at = 0;
  for (size_t found; (found = text.find(pattern, at)) != std::string_view::npos; at = found + pattern.size())
    result.append(text.substr(at, found - at)).append(content);
  return result.append(text.substr(at));
}

Result<Texts> ByteLevelDecoder::decode(Texts tokens) const {
  std::string bytes;
  for (const std::string& token : tokens) {
    std::string shown;
    bool is_shown = true;  // A token with any other character, such as an added one, is itself.
    for (size_t at = 0; at < token.size() && is_shown; at += char_bytes(token, at)) {
      const std::optional<unsigned char> byte = byte_shown_as(char_at(token, at));
      is_shown = byte.has_value();
      if (byte) shown += static_cast<char>(*byte);
    }
    bytes += is_shown ? shown : token;
  }
  return Texts{lossy_utf8(bytes)};
}

Result<Texts> ByteFallbackDecoder::decode(Texts tokens) const {
  Texts texts;
  std::string bytes;
  const auto end_run = [&] {
    if (bytes.empty()) return;
    if (is_utf8(bytes)) {
      texts.push_back(bytes);
    } else {
      texts.insert(texts.end(), bytes.size(), std::string(kReplacement));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const std::optional<char> byte = byte_named(token)) {
      bytes += *byte;
    } else {
      end_run();
      texts.push_back(std::move(token));
    }
  }
  end_run();
  return texts;
}

Result<Texts> WordPieceDecoder::decode(Texts tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0)
      tokens[i] = tokens[i].starts_with(prefix_) ? tokens[i].substr(prefix_.size()) : " " + tokens[i];
    if (cleans_up_) tokens[i] = cleaned_up(std::move(tokens[i]));
  }
  return tokens;
}

Result<Texts> MetaspaceDecoder::decode(Texts tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = replace_all(tokens[i], replacement_, i == 0 && drops_first_ ? "" : " ");
  return tokens;
}

Result<Texts> BpeDecoder::decode(Texts tokens) const {
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  return tokens;
}

Result<Texts> FuseDecoder::decode(Texts tokens) const {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return Texts{text};
}

Result<Texts> StripDecoder::decode(Texts tokens) const {
  for (std::string& token : tokens) {
    size_t front = 0;
    for (uint64_t n = 0; n < start_ && std::string_view(token).substr(front).starts_with(content_); ++n)
      front += content_.size();
    size_t end = token.size();
    for (uint64_t n = 0; n < stop_; ++n) {
      if (end == 0)  // HuggingFace panics.
        return Error{ErrorCode::invalid_argument, "decoder Strip: nothing is left of a token"};
      if (!std::string_view(token).substr(0, end).ends_with(content_)) break;
      end -= content_.size();
    }
    if (front > end) return Error{ErrorCode::invalid_argument, "decoder Strip: nothing is left of a token"};
    token = token.substr(front, end - front);
  }
  return tokens;
}

Result<Texts> ReplaceDecoder::decode(Texts tokens) const {
  for (std::string& token : tokens) token = replace_all(token, pattern_, content_);
  return tokens;
}

Result<Texts> CtcDecoder::decode(Texts tokens) const {
  Texts texts;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && tokens[i] == tokens[i - 1]) continue;
    std::string text = replace_all(tokens[i], pad_token_, "");
    if (cleans_up_) text = replace_all(cleaned_up(std::move(text)), word_delimiter_, " ");
    if (!text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

Result<Texts> SequenceDecoder::decode(Texts tokens) const {
  for (const auto& step : steps_) {
    LMEMO_ASSIGN(tokens, step->decode(std::move(tokens)));
  }
  return tokens;
}

}  // namespace lmemo::tokenizer
