// Reads a tokenizer.json and chooses the engine for it.

#include "tokenizer/tokenizer_file.h"

#include <deque>

#include "lmemo/tokenizer.h"
#include "tokenizer/fast/fast_plan.h"
#include "tokenizer/fast/remembering_tokenizer.h"
#include "tokenizer/reference/loader.h"
#include "tokenizer/source_text.h"

namespace lmemo {

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(std::string_view json) {
  LMEMO_ASSIGN(tokenizer::LoadedFile file, tokenizer::load_file(json));
  return tokenizer::make_engine(std::move(file));
}

Status Tokenizer::save_pieces(const std::filesystem::path&) const { return {}; }
Result<size_t> Tokenizer::load_pieces(const std::filesystem::path&) const { return size_t{0}; }

Result<TokenBatch> Tokenizer::encode_texts(std::span<const SourceText> texts, const EncodeOptions& options,
                                           unsigned threads) const {
  std::deque<tokenizer::TextBuffer> buffers;
  std::vector<std::string_view> views;
  views.reserve(texts.size());
  for (const SourceText& text : texts) {
    Result<std::string_view> view = tokenizer::utf8_of(text, 0, text.unit_count, buffers.emplace_back());
    if (!view.ok())
      return Error{view.error().code, "text " + std::to_string(views.size()) + ": " + view.error().message};
    views.push_back(*view);
  }
  return encode_batch(views, options, threads);
}

namespace tokenizer {

std::shared_ptr<const Tokenizer> make_engine(LoadedFile file) {
  std::optional<FastPlan> plan = fast_plan_of(file.tree, file.parts);
  if (plan) return std::make_shared<FastTokenizer>(std::move(file.parts), std::move(*plan));
  return std::make_shared<RememberingTokenizer>(std::move(file.parts));
}

Result<std::shared_ptr<const MappedFile>> mapped_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) return errno_error(error.value(), "read", path);
  LMEMO_ASSIGN(auto file, real_file_system().map(real));
  if (!file) return Error{ErrorCode::io_error, "cannot read " + path.string() + ": it is gone"};
  return file;
}

}  // namespace tokenizer

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return load_directory(path);
  if (error == std::errc::no_such_file_or_directory)
    return Error{ErrorCode::io_error, "no tokenizer at " + path.string() + ": " + error.message() +
                                          "; expected a tokenizer.json, or a model's directory with one"};
  LMEMO_ASSIGN(const auto file, tokenizer::mapped_file(path));
  Result<std::shared_ptr<const Tokenizer>> tokenizer = from_json(text_of(file->bytes()));
  if (!tokenizer.ok()) return Error{tokenizer.error().code, path.string() + ": " + tokenizer.error().message};
  return tokenizer;
}

}  // namespace lmemo
