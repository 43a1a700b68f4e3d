#include "python_tokenizer.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "errors.h"
#include "tokenizer_object.h"
#include "values.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

nb::object tuple_of(const std::optional<TruncationOptions>& truncation) {
  if (!truncation) return nb::none();
  const nb::object length = truncation->max_length == TruncationOptions::kNoLimit
                                ? nb::object(nb::none())
                                : nb::object(nb::int_(truncation->max_length));
  return nb::make_tuple(length, truncation->stride, truncation->from_left);
}

nb::object tuple_of(const std::optional<PaddingOptions>& padding) {
  if (!padding) return nb::none();
  return nb::make_tuple(padding->length, padding->multiple_of, padding->pad_id, padding->on_left);
}

class PythonTokenizer final : public Tokenizer {
 public:
  PythonTokenizer(nb::object engine, const Digest& identity, size_t vocab_size)
      : engine_(std::move(engine)), identity_(identity), vocab_size_(vocab_size) {}
  ~PythonTokenizer() override {
    const nb::gil_scoped_acquire acquired;
    engine_.reset();
  }

  Result<std::vector<uint32_t>> encode(std::string_view text, const EncodeOptions& options) const override {
    const std::string_view texts[] = {text};
    LMEMO_ASSIGN(const TokenBatch batch, encode_batch(texts, options, 1));
    return std::vector<uint32_t>(batch.ids.begin(), batch.ids.end());
  }
  Result<TokenBatch> encode_batch(std::span<const std::string_view> texts, const EncodeOptions& options,
                                  unsigned threads) const override {
    return asked([&]() -> Result<TokenBatch> {
      nb::list list;
      for (const std::string_view text : texts) list.append(nb::bytes(text.data(), text.size()));
      const nb::object result = engine_.attr("encode_batch")(
          list, options.add_special_tokens, threads, tuple_of(options.truncation), tuple_of(options.padding));
      const auto ids =
          nb::cast<nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(result[0]);
      const auto offsets =
          nb::cast<nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(result[1]);
      TokenBatch batch;
      batch.ids.assign(ids.data(), ids.data() + ids.size());
      batch.offsets.assign(offsets.data(), offsets.data() + offsets.size());
      if (batch.size() != texts.size() || batch.offsets.back() != batch.ids.size())
        return Error{ErrorCode::incompatible, "the tokenizer answered with another number of texts"};
      return batch;
    });
  }
  Result<std::string> decode(std::span<const uint32_t> ids, const DecodeOptions& options) const override {
    return asked([&] {
      nb::list list;
      for (const uint32_t id : ids) list.append(id);
      return nb::cast<std::string>(engine_.attr("decode")(list, options.skip_special_tokens));
    });
  }
  size_t vocab_size() const override { return vocab_size_; }
  std::optional<uint32_t> token_to_id(std::string_view token) const override {
    const auto id = asked([&] {
      return nb::cast<std::optional<uint32_t>>(
          engine_.attr("token_to_id")(nb::str(token.data(), token.size())));
    });
    return id.ok() ? *id : std::nullopt;
  }
  std::optional<std::string> id_to_token(uint32_t id) const override {
    const auto token =
        asked([&] { return nb::cast<std::optional<std::string>>(engine_.attr("id_to_token")(id)); });
    return token.ok() ? *token : std::nullopt;
  }
  const Digest& identity() const override { return identity_; }
  std::string_view engine() const override { return kHuggingFaceEngine; }
  std::vector<TokenizerPart> parts() const override { return {}; }

 private:
  nb::object engine_;
  const Digest identity_;
  const size_t vocab_size_;
};

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_of_engine(nb::handle engine) {
  if (nb::isinstance<NativeTokenizer>(engine)) return nb::cast<NativeTokenizer&>(engine).tokenizer;
  const auto identity = Digest::from_hex(nb::cast<std::string>(engine.attr("fingerprint")));
  if (!identity) raise_error({ErrorCode::invalid_argument, "fingerprint: expected 64 hexadecimal digits"});
  return std::make_shared<PythonTokenizer>(nb::borrow(engine), *identity,
                                           nb::cast<size_t>(engine.attr("vocab_size")));
}

Result<std::shared_ptr<const Tokenizer>> load_with_fallback(const std::filesystem::path& path) {
  Result<std::shared_ptr<const Tokenizer>> ours = Tokenizer::load(path);
  if (ours.ok() ||
      (ours.error().code != ErrorCode::incompatible && ours.error().code != ErrorCode::invalid_argument))
    return ours;
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(path, ignored);
  ModelSettings settings;
  if (is_directory) {
    LMEMO_ASSIGN(settings, ModelSettings::read(path));
  }
  const nb::gil_scoped_acquire acquired;
  try {
    const std::filesystem::path file = is_directory ? path / "tokenizer.json" : path;
    const nb::object engine =
        nb::module_::import_("lmemo._huggingface").attr("engine_of_file")(path_to_python(file));
    if (engine.is_none()) return ours;
    std::shared_ptr<const Tokenizer> theirs = tokenizer_of_engine(engine);
    return is_directory ? Tokenizer::with_settings(std::move(theirs), settings) : theirs;
  } catch (const std::exception&) {
    return ours;  // The refusal says more.
  }
}

std::string huggingface_version() {
  const nb::gil_scoped_acquire acquired;
  try {
    return nb::cast<std::string>(nb::module_::import_("lmemo._huggingface").attr("rules")());
  } catch (const std::exception&) {
    return "none";
  }
}

Result<std::filesystem::path> fetch_from_hub(const std::string& name) {
  const nb::gil_scoped_acquire acquired;
  try {
    return path_of(nb::module_::import_("lmemo._huggingface").attr("fetch_tokenizer")(name));
  } catch (const nb::python_error& error) {
    const std::string message = utf8_of(nb::str(error.value()));
    return Error{ErrorCode::io_error, message.substr(0, message.find('\n'))};
  }
}

}  // namespace lmemo::python
