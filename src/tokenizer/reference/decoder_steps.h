// The decoders that a tokenizer.json can name, one class each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/reference/decoder.h"

namespace lmemo::tokenizer {

using Texts = std::vector<std::string>;

// The printable characters of GPT-2 back to bytes. What is not UTF-8 then becomes U+FFFD.
class ByteLevelDecoder final : public Decoder {
 public:
  Result<Texts> decode(Texts tokens) const override;
};

// "<0x0A>" to its byte; bytes that are not UTF-8 together become one U+FFFD each.
class ByteFallbackDecoder final : public Decoder {
 public:
  Result<Texts> decode(Texts tokens) const override;
};

class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleans_up) : prefix_(std::move(prefix)), cleans_up_(cleans_up) {}
  Result<Texts> decode(Texts tokens) const override;

 private:
  std::string prefix_;
  bool cleans_up_;
};

class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(std::string replacement, bool drops_first)
      : replacement_(std::move(replacement)), drops_first_(drops_first) {}
  Result<Texts> decode(Texts tokens) const override;

 private:
  std::string replacement_;  // One character.
  bool drops_first_;
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  Result<Texts> decode(Texts tokens) const override;

 private:
  std::string suffix_;
};

class FuseDecoder final : public Decoder {
 public:
  Result<Texts> decode(Texts tokens) const override;
};

class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string content, uint64_t start, uint64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  Result<Texts> decode(Texts tokens) const override;

 private:
  std::string content_;  // One character.
  uint64_t start_;       // At most so many of it are taken off the front,
  uint64_t stop_;        // and off the end.
};

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Result<Texts> decode(Texts tokens) const override;

 private:
  std::string pattern_;
  std::string content_;
};

class CtcDecoder final : public Decoder {
 public:
  CtcDecoder(std::string pad_token, std::string word_delimiter, bool cleans_up)
      : pad_token_(std::move(pad_token)), word_delimiter_(std::move(word_delimiter)), cleans_up_(cleans_up) {}
  Result<Texts> decode(Texts tokens) const override;

 private:
  std::string pad_token_;
  std::string word_delimiter_;
  bool cleans_up_;
};

class SequenceDecoder final : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> steps) : steps_(std::move(steps)) {}
  Result<Texts> decode(Texts tokens) const override;

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

// As Rust's str::replace: also an empty pattern, which stands between all characters.
std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content);

}  // namespace lmemo::tokenizer
