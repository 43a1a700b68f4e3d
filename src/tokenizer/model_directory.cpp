// A model's directory: its tokenizer.json, and the settings beside it that belong to the tokenizer's identity.

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "lmemo/tokenizer.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/tokenizer_document.h"
#include "tokenizer/tokenizer_file.h"

namespace lmemo {
namespace tokenizer {
namespace {

using Json = nlohmann::json;
using std::filesystem::path;

// Of tokenizer_config.json: what changes the ids of a chat, or of a text that transformers' own class encodes. Names of
// classes and versions do not.
bool counts(std::string_view key) {
  static constexpr std::string_view kKeys[] = {"add_bos_token",
                                               "add_eos_token",
                                               "add_prefix_space",
                                               "added_tokens_decoder",
                                               "additional_special_tokens",
                                               "clean_up_tokenization_spaces",
                                               "extra_special_tokens",
                                               "legacy",
                                               "padding_side",
                                               "truncation_side"};
  return key.ends_with("_token") || std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

bool is_there(const path& file) {
  std::error_code ignored;
  return std::filesystem::exists(file, ignored);
}

Result<Json> object_in(const path& file) {
  if (!is_there(file)) return Json(Json::object());
  LMEMO_ASSIGN(const auto mapped, mapped_file(file));
  Result<TokenizerDocument> document = TokenizerDocument::read(text_of(mapped->bytes()));
  const std::string name = file.string() + ": ";
  if (!document.ok()) {
    std::string message = document.error().message;
    if (message.starts_with("tokenizer.json: ")) message.erase(0, 16);
    return Error{document.error().code, name + message};
  }
  if (!document->tree.is_object())
    return Error{ErrorCode::incompatible, name + "expected an object, found " + document->tree.type_name()};
  return std::move(document->tree);
}

// "</s>", or {"content": "</s>", …}. Empty if it is neither.
std::string content_of(const Json& token) {
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string())
    return token["content"].get<std::string>();
  return {};
}

Status read_template(const path& file, const std::string& name, Json& templates) {
  LMEMO_ASSIGN(const auto mapped, mapped_file(file));
  templates[name] = std::string(text_of(mapped->bytes()));
  return {};
}

// Later ones win, as in transformers: those of the config, then the files.
Result<Json> templates_of(const path& directory, const Json& config) {
  Json templates = Json::object();
  if (const auto found = config.find("chat_template"); found != config.end()) {
    if (found->is_string()) templates["default"] = *found;
    if (found->is_array())
      for (const Json& item : *found)
        if (item.is_object() && item.contains("name") && item["name"].is_string() &&
            item.contains("template"))
          templates[item["name"].get<std::string>()] = item["template"];
  }
  if (is_there(directory / "chat_template.jinja"))
    LMEMO_TRY(read_template(directory / "chat_template.jinja", "default", templates));
  std::error_code error;
  std::vector<path> more;
  for (const auto& file : std::filesystem::directory_iterator(directory / "additional_chat_templates", error))
    if (file.path().extension() == ".jinja") more.push_back(file.path());
  for (const path& file : more) LMEMO_TRY(read_template(file, file.stem().string(), templates));
  return templates;
}

// The directory's identity in front of the tokenizer that does the work.
class DirectoryTokenizer final : public Tokenizer {
 public:
  DirectoryTokenizer(std::shared_ptr<const Tokenizer> tokenizer, const ModelSettings& settings)
      : tokenizer_(std::move(tokenizer)),
        identity_(settings.identity_with(tokenizer_->identity())),
        settings_(settings) {}

  Result<std::vector<uint32_t>> encode(std::string_view text, const EncodeOptions& options) const override {
    return tokenizer_->encode(text, options);
  }
  Result<TokenBatch> encode_batch(std::span<const std::string_view> texts, const EncodeOptions& options,
                                  unsigned threads) const override {
    return tokenizer_->encode_batch(texts, options, threads);
  }
  Result<TokenBatch> encode_texts(std::span<const SourceText> texts, const EncodeOptions& options,
                                  unsigned threads) const override {
    return tokenizer_->encode_texts(texts, options, threads);
  }
  Result<std::string> decode(std::span<const uint32_t> ids, const DecodeOptions& options) const override {
    return tokenizer_->decode(ids, options);
  }
  Status save_pieces(const std::filesystem::path& path) const override {
    return tokenizer_->save_pieces(path);
  }
  Result<size_t> load_pieces(const std::filesystem::path& path) const override {
    return tokenizer_->load_pieces(path);
  }
  size_t vocab_size() const override { return tokenizer_->vocab_size(); }
  uint64_t id_limit() const override { return tokenizer_->id_limit(); }
  std::optional<uint32_t> token_to_id(std::string_view token) const override {
    return tokenizer_->token_to_id(token);
  }
  std::optional<std::string> id_to_token(uint32_t id) const override { return tokenizer_->id_to_token(id); }
  const Digest& identity() const override { return identity_; }
  std::string_view engine() const override { return tokenizer_->engine(); }
  std::vector<TokenizerPart> parts() const override {
    std::vector<TokenizerPart> parts = tokenizer_->parts();
    for (const auto& [role, token] : settings_.special_tokens) parts.push_back({role, token});
    for (const auto& [name, text] : settings_.chat_templates)
      parts.push_back({"chat template", name + ", " + std::to_string(text.size()) + " bytes"});
    return parts;
  }

 private:
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const Digest identity_;
  const ModelSettings settings_;
};

}  // namespace
}  // namespace tokenizer

Result<ModelSettings> ModelSettings::read(const std::filesystem::path& directory) {
  using tokenizer::Json;
  LMEMO_ASSIGN(const Json config, tokenizer::object_in(directory / "tokenizer_config.json"));
  LMEMO_ASSIGN(const Json tokens, tokenizer::object_in(directory / "special_tokens_map.json"));
  LMEMO_ASSIGN(const Json templates, tokenizer::templates_of(directory, config));

  ModelSettings settings;
  Json counted = Json::object();
  for (const Json* source : {&tokens, &config})  // The config wins.
    for (const auto& [key, value] : source->items())
      if (tokenizer::counts(key)) counted[key] = value;
  for (const auto& [key, value] : counted.items())
    if (const std::string content = tokenizer::content_of(value); key.ends_with("_token") && !content.empty())
      settings.special_tokens.emplace_back(key, content);
  for (const auto& [name, value] : templates.items())
    if (value.is_string()) settings.chat_templates.emplace_back(name, value.get<std::string>());
  counted["chat_templates"] = templates;
  settings.canonical = counted.dump(-1, ' ', false, Json::error_handler_t::replace);
  return settings;
}

const std::string* ModelSettings::chat_template() const {
  for (const auto& [name, text] : chat_templates)
    if (name == "default") return &text;
  return nullptr;
}

Digest ModelSettings::identity_with(const Digest& tokenizer) const {
  Sha256 hash;
  hash.update(bytes_of("lmemo tokenizer of a directory, reading 1\n" + tokenizer.hex() + "\n"));
  hash.update(bytes_of(canonical));
  return hash.finish();
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load_directory(const std::filesystem::path& path) {
  LMEMO_ASSIGN(const ModelSettings settings, ModelSettings::read(path));
  LMEMO_ASSIGN(auto tokenizer, load(path / "tokenizer.json"));
  return with_settings(std::move(tokenizer), settings);
}

std::shared_ptr<const Tokenizer> Tokenizer::with_settings(std::shared_ptr<const Tokenizer> tokenizer,
                                                          const ModelSettings& settings) {
  return std::make_shared<tokenizer::DirectoryTokenizer>(std::move(tokenizer), settings);
}

}  // namespace lmemo
