// A tiktoken rank file: a line for each token, its bytes in base64 and its rank, which is also its id.
//
// tiktoken merges whatever gives a token, and prefers a piece that is a token as a whole (ignore_merges). How text is
// cut stands in its source, not in the file: the patterns below are those of tiktoken 0.14, in the words of our regex.
// "$" is the end of the text there and "\z" here; "{1,3}+" keeps what it took there and repeats itself here.

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "lmemo/tokenizer.h"
#include "tokenizer/base64.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/json_reader.h"
#include "tokenizer/reference/bpe.h"
#include "tokenizer/reference/byte_characters.h"
#include "tokenizer/reference/pipeline.h"
#include "tokenizer/tokenizer_file.h"

namespace lmemo {
namespace tokenizer {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kRules = "lmemo tokenizer, rules of tiktoken 0.14, reading 1\n";

constexpr std::string_view kR50k =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++\z|\s+(?!\S)|\s)";
constexpr std::string_view kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|\s*[\r\n]|\s+(?!\S)|\s)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::pair<std::string_view, std::string_view> kPatterns[] = {
    {"gpt2", kR50k},      {"r50k", kR50k},        {"r50k_base", kR50k},      {"p50k", kR50k},
    {"p50k_base", kR50k}, {"p50k_edit", kR50k},   {"cl100k", kCl100k},       {"cl100k_base", kCl100k},
    {"o200k", kO200k},    {"o200k_base", kO200k}, {"o200k_harmony", kO200k},
};

Error wrong(size_t line, const std::string& what) {
  return {ErrorCode::incompatible, "tiktoken file, line " + std::to_string(line) + ": " + what};
}

// What means something else in tiktoken's regex engine than in HuggingFace's, which ours follows; empty if nothing does.
std::string ambiguity_in(std::string_view regex) {
  int class_depth = 0;
  for (size_t at = 0; at < regex.size(); ++at) {
    const char here = regex[at];
    if (here == '\\') {
      ++at;
      if (at < regex.size() && std::string_view("wWbBdDhHRXKG").find(regex[at]) != std::string_view::npos)
        return "\\" + std::string(1, regex[at]);
      continue;
    }
    if (here == '[') {
      ++class_depth;
      if (regex.substr(at + 1).starts_with('^')) ++at;
    } else if (here == ']') {
      --class_depth;
    } else if (class_depth == 0 && (here == '^' || here == '$')) {
      return std::string(1, here);
    } else if (class_depth == 0 && here == '}' && regex.substr(at + 1).starts_with('+')) {
      return "}+";
    }
  }
  return {};
}

// A name, or a regex. What looks like a name and is none is more likely a mistake.
Result<std::string> regex_of(const std::string& pattern) {
  std::string names;
  for (const auto& [name, regex] : kPatterns) {
    if (name == pattern) return std::string(regex);
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  const bool is_word = std::all_of(pattern.begin(), pattern.end(), [](unsigned char byte) {
    return std::isalnum(byte) || byte == '_' || byte == '-';
  });
  if (is_word)
    return Error{ErrorCode::invalid_argument,
                 "pattern " + shown(pattern) + " is not known; expected a regex or one of " + names};
  if (const std::string found = ambiguity_in(pattern); !found.empty())
    return Error{
        ErrorCode::incompatible,
        "pattern: \"" + found +
            "\" means another thing to tiktoken than here; expected a name, or a regex without it (\\A and "
            "\\z are the ends of the text)"};
  return pattern;
}

// Tokens in GPT-2's alphabet, with their ranks as ids.
Result<Vocabulary> ranks_in(std::string_view file) {
  Vocabulary vocabulary;
  for (size_t line = 1, at = 0; at < file.size(); ++line) {
    const size_t end = std::min(file.find('\n', at), file.size());
    std::string_view row = file.substr(at, end - at);
    at = end + 1;
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.empty()) continue;
    const size_t space = row.find(' ');
    if (space == std::string_view::npos) return wrong(line, "expected base64, a blank and a rank");
    const std::optional<std::string> bytes = base64_decoded(row.substr(0, space));
    if (!bytes || bytes->empty())
      return wrong(line, shown(row.substr(0, space)) + " is not base64 of a token");
    const std::string_view digits = row.substr(space + 1);
    uint32_t rank = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (error != std::errc() || stop != digits.data() + digits.size())
      return wrong(line, "expected a rank below 2^32, found " + shown(digits));
    if (vocabulary.add(bytes_as_characters(*bytes), rank) != Vocabulary::Added::yes)
      return wrong(line, "a token or a rank that stands in a line before");
  }
  for (unsigned byte = 0; byte < 256; ++byte)
    if (!vocabulary.id_of(bytes_as_characters(std::string(1, static_cast<char>(byte)))))
      return Error{ErrorCode::incompatible,
                   "tiktoken file: byte " + std::to_string(byte) + " has no rank; expected all 256 of them"};
  return vocabulary;
}

Digest identity_of(const Vocabulary& vocabulary, std::string_view regex, const TiktokenOptions& options) {
  Sha256 hash;
  hash.update(bytes_of(kRules));
  const auto add = [&](std::string_view text, uint64_t number) {
    hash.update(bytes_of(std::to_string(text.size()) + " " + std::to_string(number) + "\n"));
    hash.update(bytes_of(text));
  };
  add(regex, options.special_tokens.size());
  auto specials = options.special_tokens;
  std::sort(specials.begin(), specials.end());
  for (const auto& [token, id] : specials) add(token, id);
  std::vector<std::pair<uint32_t, std::string_view>> ranks;
  vocabulary.for_each([&](std::string_view token, uint32_t rank) { ranks.emplace_back(rank, token); });
  std::sort(ranks.begin(), ranks.end());
  for (const auto& [rank, token] : ranks) add(token, rank);
  return hash.finish();
}

Result<LoadedFile> tiktoken_parts(std::string_view file, const TiktokenOptions& options) {
  if (file.size() > kMaxJsonBytes)
    return Error{ErrorCode::incompatible, "tiktoken file: " + std::to_string(file.size()) +
                                              " bytes; expected at most " + std::to_string(kMaxJsonBytes)};
  LMEMO_ASSIGN(const std::string regex, regex_of(options.pattern));
  LMEMO_ASSIGN(Vocabulary vocabulary, ranks_in(file));
  Parts parts;
  parts.identity = identity_of(vocabulary, regex, options);
  const Json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  const Json split = {
      {"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
  const Json steps = {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
  LMEMO_ASSIGN(parts.pre_tokenizer, make_pre_tokenizer(steps, "pattern"));
  LMEMO_ASSIGN(parts.decoder, make_decoder(bytes, "decoder"));

  std::vector<AddedToken> specials;
  for (const auto& [content, id] : options.special_tokens) {
    const bool is_taken = vocabulary.token_of(id) || std::any_of(specials.begin(), specials.end(),
                                                                 [wanted = id](const AddedToken& other) {
                                                                   return other.fixed_id == wanted;
                                                                 });
    if (is_taken || content.empty())
      return Error{ErrorCode::invalid_argument,
                   "special token " + shown(content) + ": id " + std::to_string(id) +
                       (content.empty() ? " has no text" : " belongs to another token")};
    specials.push_back({.content = content, .is_special = true, .fixed_id = id});
  }
  parts.in_words = {{"model", "tiktoken BPE, " + std::to_string(vocabulary.size()) + " tokens"},
                    {"pattern", options.pattern},
                    {"special tokens", std::to_string(specials.size())}};
  BpeOptions bpe;
  bpe.ignore_merges = true;
  parts.model = Bpe::of_ranks(std::move(vocabulary), std::move(bpe));
  LMEMO_ASSIGN(parts.added_tokens, AddedTokens::make(specials, *parts.model, nullptr, "special tokens"));
  return LoadedFile{std::move(parts), {{"pre_tokenizer", steps}}};
}

}  // namespace
}  // namespace tokenizer

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_tiktoken(std::string_view ranks,
                                                                  const TiktokenOptions& options) {
  LMEMO_ASSIGN(tokenizer::LoadedFile file, tokenizer::tiktoken_parts(ranks, options));
  return tokenizer::make_engine(std::move(file));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load_tiktoken(const std::filesystem::path& path,
                                                                  const TiktokenOptions& options) {
  LMEMO_ASSIGN(const auto file, tokenizer::mapped_file(path));
  Result<std::shared_ptr<const Tokenizer>> tokenizer = from_tiktoken(text_of(file->bytes()), options);
  if (!tokenizer.ok()) return Error{tokenizer.error().code, path.string() + ": " + tokenizer.error().message};
  return tokenizer;
}

}  // namespace lmemo
