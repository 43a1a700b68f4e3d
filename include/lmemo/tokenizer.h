// Text to token ids, bit-identical to HuggingFace `tokenizers` 0.23.3 on every tokenizer.json that loads.
//
//   LMEMO_ASSIGN(auto tokenizer, Tokenizer::load("tokenizer.json"));
//   LMEMO_ASSIGN(std::vector<uint32_t> ids, tokenizer->encode("Hello, world"));
//   LMEMO_ASSIGN(std::string text, tokenizer->decode(ids));
//
// A file with a part that is not implemented is refused, with its name and its place in the file. Nothing is
// approximated: what loads gives the ids of HuggingFace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo {

struct EncodeOptions {
  bool add_special_tokens =
      true;  // What the post-processor adds: [CLS], <s>, … Those in the text always count.
};

struct DecodeOptions {
  bool skip_special_tokens = true;
};

// The ids of many texts in one buffer: text i has ids[offsets[i]] up to ids[offsets[i + 1]].
struct TokenBatch {
  std::vector<uint32_t> ids;
  std::vector<uint64_t> offsets = {0};

  size_t size() const { return offsets.size() - 1; }
  std::span<const uint32_t> operator[](size_t text) const {
    return std::span(ids).subspan(offsets[text], offsets[text + 1] - offsets[text]);
  }
};

// Never changes after it was loaded: any number of threads may use one object.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& path);
  static Result<std::shared_ptr<const Tokenizer>> from_json(std::string_view json);

  // Truncation and padding of the file apply. Text that is not UTF-8 is an invalid_argument.
  virtual Result<std::vector<uint32_t>> encode(std::string_view text,
                                               const EncodeOptions& options = {}) const = 0;

  // Padding to the longest, if the file asks for it, is to the longest of this batch. `threads` = 0: one per core.
  virtual Result<TokenBatch> encode_batch(std::span<const std::string_view> texts,
                                          const EncodeOptions& options = {}, unsigned threads = 0) const = 0;

  // Ids that no token has are left out.
  virtual Result<std::string> decode(std::span<const uint32_t> ids,
                                     const DecodeOptions& options = {}) const = 0;

  virtual size_t vocab_size() const = 0;  // Tokens of the model and added tokens together.
  virtual std::optional<uint32_t> token_to_id(std::string_view token) const = 0;
  virtual std::optional<std::string> id_to_token(uint32_t id) const = 0;

  // Equal only if every text gets the same ids: over the meaning of the file (the order of its keys does not count)
  // and the rules by which it is read. Not over the engine, since all engines agree.
  virtual const Digest& identity() const = 0;
  virtual std::string_view engine() const = 0;  // "reference"
};

}  // namespace lmemo
