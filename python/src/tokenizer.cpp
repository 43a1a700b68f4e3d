// lmemo._core.NativeTokenizer: the compiled tokenizer. lmemo/tokenizer.py puts lmemo.Tokenizer in front of it.

#include "lmemo/tokenizer.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "errors.h"
#include "texts.h"
#include "tokenizer_object.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

using SharedTokenizer = std::shared_ptr<const Tokenizer>;

// A numpy array that owns the numbers: nothing is copied.
template <typename Vector>
nb::object array_of(Vector numbers) {
  using Number = typename Vector::value_type;
  auto* owned = new Vector(std::move(numbers));
  nb::capsule owner(owned, [](void* vector) noexcept { delete static_cast<Vector*>(vector); });
  return nb::ndarray<nb::numpy, Number, nb::ndim<1>>(owned->data(), {owned->size()}, owner).cast();
}

// As Python gives them: (max_length, stride, from_left) and (length, multiple_of, pad_id, on_left).
using TruncationTuple = std::tuple<std::optional<uint64_t>, uint64_t, bool>;
using PaddingTuple = std::tuple<std::optional<uint64_t>, uint64_t, uint32_t, bool>;

EncodeOptions options_of(bool add_special_tokens, const std::optional<TruncationTuple>& truncation,
                         const std::optional<PaddingTuple>& padding) {
  EncodeOptions options;
  options.add_special_tokens = add_special_tokens;
  if (truncation) {
    const auto& [max_length, stride, from_left] = *truncation;
    options.truncation = {max_length.value_or(TruncationOptions::kNoLimit), stride, from_left};
  }
  if (padding) {
    const auto& [length, multiple_of, pad_id, on_left] = *padding;
    options.padding = {length, multiple_of, pad_id, on_left};
  }
  return options;
}

NativeTokenizer tokenizer_from_json(nb::handle json) {
  const std::string_view text = text_view(json);
  Result<SharedTokenizer> tokenizer = [&] {
    nb::gil_scoped_release release;
    return Tokenizer::from_json(text);
  }();
  return {value_or_raise(std::move(tokenizer))};
}

NativeTokenizer load(nb::handle path) {
  const std::filesystem::path file = path_of(path);
  Result<SharedTokenizer> tokenizer = [&] {
    nb::gil_scoped_release release;
    return Tokenizer::load(file);
  }();
  return {value_or_raise(std::move(tokenizer))};
}

NativeTokenizer load_tiktoken(nb::handle path, const std::string& pattern,
                              const std::map<std::string, uint32_t>& special_tokens) {
  const std::filesystem::path file = path_of(path);
  const TiktokenOptions options{pattern, {special_tokens.begin(), special_tokens.end()}};
  Result<SharedTokenizer> tokenizer = [&] {
    nb::gil_scoped_release release;
    return Tokenizer::load_tiktoken(file, options);
  }();
  return {value_or_raise(std::move(tokenizer))};
}

nb::object encode(const NativeTokenizer& self, nb::handle text, bool add_special_tokens,
                  const std::optional<TruncationTuple>& truncation,
                  const std::optional<PaddingTuple>& padding) {
  const std::string_view view = text_view(text);
  const EncodeOptions options = options_of(add_special_tokens, truncation, padding);
  Result<std::vector<uint32_t>> ids = [&] {
    nb::gil_scoped_release release;
    return self.tokenizer->encode(view, options);
  }();
  return array_of(value_or_raise(std::move(ids)));
}

nb::tuple encode_batch(const NativeTokenizer& self, nb::handle texts, bool add_special_tokens,
                       unsigned threads, const std::optional<TruncationTuple>& truncation,
                       const std::optional<PaddingTuple>& padding) {
  const Texts kept(texts);
  const EncodeOptions options = options_of(add_special_tokens, truncation, padding);
  Result<TokenBatch> batch = [&] {
    nb::gil_scoped_release release;
    return self.tokenizer->encode_texts(kept.views(), options, threads);
  }();
  if (!batch.ok()) kept.expect_utf8();
  TokenBatch done = value_or_raise(std::move(batch));
  return nb::make_tuple(array_of(std::move(done.ids)), array_of(std::move(done.offsets)));
}

// Of anything that is a whole number to Python, numpy's and torch's among them.
uint32_t id_of(nb::handle id) {
  const nb::object number = nb::steal(PyNumber_Index(id.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  const unsigned long long value = PyLong_AsUnsignedLongLong(number.ptr());
  const bool is_beyond = PyErr_Occurred() != nullptr;
  PyErr_Clear();
  if (is_beyond || value > std::numeric_limits<uint32_t>::max())
    raise_error({ErrorCode::invalid_argument,
                 std::string("id ") + nb::str(number).c_str() + ": expected 0 to 4294967295"});
  return static_cast<uint32_t>(value);
}

std::string decode(const NativeTokenizer& self, const nb::object& ids, bool skip_special_tokens) {
  std::vector<uint32_t> numbers;
  for (const nb::handle id : ids) numbers.push_back(id_of(id));
  return value_or_raise(self.tokenizer->decode(numbers, {skip_special_tokens}));
}

std::map<std::string, std::string> map_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  return {pairs.begin(), pairs.end()};
}

std::string identity_with(const ModelSettings& settings, const std::string& fingerprint) {
  std::optional<Digest> digest = Digest::from_hex(fingerprint);
  if (!digest) raise_error({ErrorCode::invalid_argument, "fingerprint: expected 64 hexadecimal digits"});
  return settings.identity_with(*digest).hex();
}

}  // namespace

void init_tokenizers(nb::module_& m) {
  nb::class_<ModelSettings>(m, "ModelSettings",
                            "What stands beside the tokenizer.json in a model's directory.")
      .def_static(
          "read", [](nb::handle path) { return value_or_raise(ModelSettings::read(path_of(path))); },
          "directory"_a, nb::sig("def read(directory: str | os.PathLike[str]) -> ModelSettings"))
      .def_prop_ro(
          "special_tokens", [](const ModelSettings& self) { return map_of(self.special_tokens); },
          "By their role: {'eos_token': '</s>'}.")
      .def_prop_ro(
          "chat_templates", [](const ModelSettings& self) { return map_of(self.chat_templates); },
          "By name; the usual one is 'default'.")
      .def("identity_with", &identity_with, "fingerprint"_a,
           "The fingerprint of a tokenizer together with these settings.");

  nb::class_<NativeTokenizer>(m, "NativeTokenizer", "The compiled engine behind lmemo.Tokenizer.")
      .def_static("from_json", &tokenizer_from_json, "json"_a.none(),
                  nb::sig("def from_json(json: str | bytes) -> NativeTokenizer"),
                  "Builds the tokenizer that the text of a tokenizer.json describes.")
      .def_static("load", &load, "path"_a.none(),
                  nb::sig("def load(path: str | os.PathLike[str]) -> NativeTokenizer"),
                  "Builds it from a file, which is mapped and not copied, or from a model's directory.")
      .def_static("load_tiktoken", &load_tiktoken, "path"_a, "pattern"_a, "special_tokens"_a,
                  nb::sig("def load_tiktoken(path: str | os.PathLike[str], pattern: str, "
                          "special_tokens: dict[str, int]) -> NativeTokenizer"),
                  "Builds it from a tiktoken rank file.")
      .def("encode", &encode, "text"_a.none(), "add_special_tokens"_a, "truncation"_a.none() = nb::none(),
           "padding"_a.none() = nb::none(),
           nb::sig("def encode(self, text: str | bytes, add_special_tokens: bool, "
                   "truncation: tuple[int | None, int, bool] | None = None, "
                   "padding: tuple[int | None, int, int, bool] | None = None) -> NDArray[numpy.uint32]"))
      .def("encode_batch", &encode_batch, "texts"_a.none(), "add_special_tokens"_a, "threads"_a,
           "truncation"_a.none() = nb::none(), "padding"_a.none() = nb::none(),
           nb::sig("def encode_batch(self, texts: Texts, add_special_tokens: bool, threads: int, "
                   "truncation: tuple[int | None, int, bool] | None = None, "
                   "padding: tuple[int | None, int, int, bool] | None = None) "
                   "-> tuple[NDArray[numpy.uint32], NDArray[numpy.uint64]]"),
           "All ids in one array, and where each text starts in it. `threads` 0 is one per core.")
      .def("decode", &decode, "ids"_a.none(), "skip_special_tokens"_a,
           nb::sig("def decode(self, ids: Iterable[int], skip_special_tokens: bool) -> str"))
      .def(
          "token_to_id",
          [](const NativeTokenizer& self, nb::handle token) {
            return self.tokenizer->token_to_id(text_view(token));
          },
          "token"_a, nb::sig("def token_to_id(self, token: str) -> int | None"))
      .def(
          "id_to_token",
          [](const NativeTokenizer& self, nb::handle id) { return self.tokenizer->id_to_token(id_of(id)); },
          "id"_a, nb::sig("def id_to_token(self, id: int) -> str | None"))
      .def(
          "save_pieces",
          [](const NativeTokenizer& self, nb::handle path) {
            const std::filesystem::path file = path_of(path);
            const Status status = [&] {
              nb::gil_scoped_release release;
              return self.tokenizer->save_pieces(file);
            }();
            raise_if_failed(status);
          },
          "path"_a, nb::sig("def save_pieces(self, path: str | os.PathLike[str]) -> None"))
      .def(
          "load_pieces",
          [](const NativeTokenizer& self, nb::handle path) {
            const std::filesystem::path file = path_of(path);
            Result<size_t> count = [&] {
              nb::gil_scoped_release release;
              return self.tokenizer->load_pieces(file);
            }();
            return value_or_raise(std::move(count));
          },
          "path"_a, nb::sig("def load_pieces(self, path: str | os.PathLike[str]) -> int"))
      .def_prop_ro("vocab_size", [](const NativeTokenizer& self) { return self.tokenizer->vocab_size(); })
      .def_prop_ro("fingerprint",
                   [](const NativeTokenizer& self) { return self.tokenizer->identity().hex(); })
      .def_prop_ro("engine",
                   [](const NativeTokenizer& self) { return std::string(self.tokenizer->engine()); });
}

}  // namespace lmemo::python
