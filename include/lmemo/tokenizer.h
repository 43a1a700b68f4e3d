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
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo {

// As HuggingFace's enable_truncation() and enable_padding().
struct TruncationOptions {
  static constexpr uint64_t kNoLimit = ~uint64_t{0};

  uint64_t max_length = kNoLimit;  // With the special tokens.
  uint64_t stride = 0;             // Of what is cut off, which is not returned; checked all the same.
  bool from_left = false;
};

struct PaddingOptions {
  std::optional<uint64_t> length;  // None: to the longest of a batch. 0: no padding.
  uint64_t multiple_of = 0;
  uint32_t pad_id = 0;
  bool on_left = false;
};

struct EncodeOptions {
  // What the post-processor adds: [CLS], <s>, … Those in the text always count.
  bool add_special_tokens = true;
  // Instead of what the file says.
  std::optional<TruncationOptions> truncation = std::nullopt;
  std::optional<PaddingOptions> padding = std::nullopt;
};

// A tiktoken rank file says nothing about how text is cut, nor about special tokens.
struct TiktokenOptions {
  // "gpt2", "r50k", "p50k", "cl100k", "o200k", with or without "_base"; else a regex.
  std::string pattern;
  std::vector<std::pair<std::string, uint32_t>> special_tokens = {};
};

struct DecodeOptions {
  bool skip_special_tokens = true;
};

namespace detail {
// Up to 64 MiB of what was freed are kept for the next results: touching fresh memory takes long.
void* allocate_result(size_t bytes);
void free_result(void* memory, size_t bytes) noexcept;
}  // namespace detail

// A vector of ids whose `resize` leaves new ones unwritten: they are about to be.
template <typename Number>
struct UnwrittenAllocator {
  using value_type = Number;

  UnwrittenAllocator() = default;
  template <typename Other>
  UnwrittenAllocator(const UnwrittenAllocator<Other>&) noexcept {}

  Number* allocate(size_t count) {
    return static_cast<Number*>(detail::allocate_result(count * sizeof(Number)));
  }
  void deallocate(Number* numbers, size_t count) noexcept {
    detail::free_result(numbers, count * sizeof(Number));
  }
  template <typename Made>
  void construct(Made* place) noexcept {
    ::new (static_cast<void*>(place)) Made;
  }
  template <typename Made, typename... Arguments>
  void construct(Made* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) Made(std::forward<Arguments>(arguments)...);
  }
  bool operator==(const UnwrittenAllocator&) const = default;
};
using TokenIds = std::vector<uint32_t, UnwrittenAllocator<uint32_t>>;

// The ids of many texts in one buffer: text i has ids[offsets[i]] up to ids[offsets[i + 1]].
struct TokenBatch {
  TokenIds ids;
  std::vector<uint64_t> offsets = {0};

  size_t size() const { return offsets.size() - 1; }
  std::span<const uint32_t> operator[](size_t text) const {
    return std::span(ids).subspan(offsets[text], offsets[text + 1] - offsets[text]);
  }
};

// A text as its owner keeps it. What is not UTF-8 is converted by the threads that encode it, without a copy of all.
struct SourceText {
  enum class Form : uint8_t { utf8, latin1, ucs2, ucs4 };  // But for UTF-8, each unit is a code point.

  const void* data = nullptr;
  size_t unit_count = 0;
  Form form = Form::utf8;

  static SourceText of(std::string_view text) { return {text.data(), text.size(), Form::utf8}; }
};

// What stands beside the tokenizer.json in a model's directory: special tokens by their role and chat templates, from
// tokenizer_config.json, special_tokens_map.json, chat_template.jinja and additional_chat_templates/. They change no
// id of a plain text, but those of a chat, and so belong to the identity of the directory's tokenizer.
struct ModelSettings {
  std::vector<std::pair<std::string, std::string>> special_tokens;  // {"eos_token", "</s>"}, sorted.
  std::vector<std::pair<std::string, std::string>> chat_templates;  // {"default", "{% for …"}, sorted.
  std::string canonical;                                            // All that counts, as JSON.

  // A file that is missing counts as empty.
  static Result<ModelSettings> read(const std::filesystem::path& directory);
  const std::string* chat_template() const;  // The one named default; null if there is none.
  Digest identity_with(const Digest& tokenizer) const;
};

// What a tokenizer is made of, in words: {"normalizer", "NFC"}.
struct TokenizerPart {
  std::string name;
  std::string description;
};

// Who runs files that are refused here, where Python has it.
inline constexpr std::string_view kHuggingFaceEngine = "huggingface";

// Never changes after it was loaded: any number of threads may use one object.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // A tokenizer.json, or a directory with one (see ModelSettings).
  static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& path);
  static Result<std::shared_ptr<const Tokenizer>> from_json(std::string_view json);
  // With the identity that it has among these settings.
  static std::shared_ptr<const Tokenizer> with_settings(std::shared_ptr<const Tokenizer> tokenizer,
                                                        const ModelSettings& settings);
  // The ids of tiktoken's encode(text, allowed_special="all").
  static Result<std::shared_ptr<const Tokenizer>> load_tiktoken(const std::filesystem::path& path,
                                                                const TiktokenOptions& options);
  static Result<std::shared_ptr<const Tokenizer>> from_tiktoken(std::string_view ranks,
                                                                const TiktokenOptions& options);

  // Truncation and padding of the file apply, if the options name no other. Text that is not UTF-8 is an invalid_argument.
  virtual Result<std::vector<uint32_t>> encode(std::string_view text,
                                               const EncodeOptions& options = {}) const = 0;

  // Padding to the longest, if the file asks for it, is to the longest of this batch. `threads` = 0: one per core.
  virtual Result<TokenBatch> encode_batch(std::span<const std::string_view> texts,
                                          const EncodeOptions& options = {}, unsigned threads = 0) const = 0;
  // The same for texts that may not be UTF-8. Half a surrogate pair is an invalid_argument.
  virtual Result<TokenBatch> encode_texts(std::span<const SourceText> texts,
                                          const EncodeOptions& options = {}, unsigned threads = 0) const;

  // What was met so far, with its ids, in a file: a process that loads it begins as fast as this one is now. The file is
  // for this tokenizer alone; another's or a damaged one is an error, and changes nothing. Replaced atomically.
  virtual Status save_pieces(const std::filesystem::path& path) const;
  // How many pieces were in the file; 0 if there is none, or if the engine has no use for it.
  virtual Result<size_t> load_pieces(const std::filesystem::path& path) const;

  // Ids that no token has are left out.
  virtual Result<std::string> decode(std::span<const uint32_t> ids,
                                     const DecodeOptions& options = {}) const = 0;

  virtual size_t vocab_size() const = 0;  // Tokens of the model and added tokens together.
  // Every id is below. More than vocab_size() where ids have gaps.
  virtual uint64_t id_limit() const { return vocab_size(); }
  virtual std::optional<uint32_t> token_to_id(std::string_view token) const = 0;
  virtual std::optional<std::string> id_to_token(uint32_t id) const = 0;

  // Equal only if every text gets the same ids: over the meaning of the file (the order of its keys does not count)
  // and the rules by which it is read. Not over the engine, since all engines agree.
  virtual const Digest& identity() const = 0;
  virtual std::string_view engine() const = 0;  // "fast" or "reference", or kHuggingFaceEngine
  virtual std::vector<TokenizerPart> parts() const = 0;

 private:
  static Result<std::shared_ptr<const Tokenizer>> load_directory(const std::filesystem::path& path);
};

}  // namespace lmemo
